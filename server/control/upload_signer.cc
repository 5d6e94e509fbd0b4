#include "server/control/upload_signer.h"

#include <algorithm>

namespace chainfleet {

absl::StatusOr<SignedUpload> UploadSigner::SignUpload(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                                                      const std::optional<WorkerIdentity>& session) {
  CHAINFLEET_RETURN_IF_ERROR(objects_.Admit(chain, lease_epoch, ref, session));
  CHAINFLEET_ASSIGN_OR_RETURN(SignedUpload upload, sign_(ref, limits::kSignedUploadTerm));
  WatchOver(chain, lease_epoch, limits::kSignedUploadTerm + limits::UploadTimeout(ref.size_bytes));
  return upload;
}

void UploadSigner::WatchOver(const ChainId& chain, int64_t lease_epoch, absl::Duration longest) {
  const absl::Duration until = clock_->Monotonic() + longest;
  MutexLock lock(&mutex_);
  const auto [watch, fresh] = watches_.try_emplace(chain, Watch{lease_epoch, until});
  watch->second = {lease_epoch, std::max(watch->second.until, until)};
  if (fresh) executor_->ScheduleAfter(longest, [this, chain] { Look(chain); });
}

void UploadSigner::Look(const ChainId& chain) {
  Watch watch;
  {
    MutexLock lock(&mutex_);
    const auto found = watches_.find(chain);
    watch = found->second;
    const absl::Duration now = clock_->Monotonic();
    if (watch.until > now) return executor_->ScheduleAfter(watch.until - now, [this, chain] { Look(chain); });
    watches_.erase(found);
  }
  const absl::StatusOr<bool> current = state_->MayCommit(chain, watch.lease_epoch);
  if (!current.ok() || !*current) writer_->Persist(change::QueueSweep{chain});
}

}  // namespace chainfleet
