#include "server/control/chain_objects.h"

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "server/control/commit_check.h"

namespace chainfleet {

absl::Status ChainObjects::Admit(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                                 const std::optional<WorkerIdentity>& session) const {
  const auto name = ParseChainObjectName(ref.name);
  if (name && name->store_incarnation != state_->incarnation()) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat("object ", ref.name, " is of another store than ",
                                                                 state_->incarnation(), ", drop the chain")),
                      "LEASE_FENCED");
  }
  if (!name || name->chain != chain || name->lease_epoch != lease_epoch) {
    return InvalidFields({{"header.blob.name", absl::StrCat("\"", ref.name, "\" is no object of chain ",
                                                            ToString(chain), " at lease epoch ", lease_epoch)}});
  }
  if (ref.size_bytes <= 0 || ref.size_bytes > limits::kMaxBlobBytes) {
    return InvalidFields(
        {{"header.blob.size_bytes", absl::StrCat("must be 1 to ", limits::kMaxBlobBytes, ", is ", ref.size_bytes)}});
  }
  return sessions_.CheckLease(chain, lease_epoch, session);
}

absl::Status ChainObjects::Put(const BlobRef& ref, const std::string& bytes) const {
  if (static_cast<int64_t>(bytes.size()) != ref.size_bytes || Sha256Hex(bytes) != ref.sha256) {
    return WithReason(absl::DataLossError(absl::StrCat("the ", bytes.size(), " bytes that arrived for object ",
                                                       ref.name, " do not match its size and SHA-256")),
                      "DIGEST_MISMATCH");
  }
  CHAINFLEET_RETURN_IF_ERROR(blobs_->Put(ref.name, bytes));
  // Ask after the object was written: a lease that ends later queues the chain itself.
  const auto name = ParseChainObjectName(ref.name);
  const absl::StatusOr<bool> current = state_->MayCommit(name->chain, name->lease_epoch);
  if (!current.ok() || !*current) writer_->Persist(change::QueueSweep{name->chain});
  return absl::OkStatus();
}

bool ChainObjects::MustPrepare(const ProgressCommit& commit) const {
  const ResumePoint& point = commit.resume_point;
  return (commit.segment || point.object || MustEncrypt(point)) &&
         CheckObjectNames(commit, state_->incarnation()).ok() &&
         sessions_
             .CheckLease(commit.chain, commit.lease_epoch, WorkerIdentity{commit.author.worker, commit.incarnation})
             .ok();
}

absl::Status ChainObjects::Prepare(ProgressCommit* prepared) const {
  const ProgressCommit& commit = *prepared;
  const auto check = [&](const BlobRef& ref) -> absl::Status {
    const absl::StatusOr<int64_t> size = blobs_->SizeBytes(ref.name);
    if (size.ok() && *size == ref.size_bytes) return absl::OkStatus();
    if (!size.ok() && !absl::IsNotFound(size.status())) return size.status();
    return WithReason(absl::FailedPreconditionError(absl::StrCat("object ", ref.name, " of chain ",
                                                                 ToString(commit.chain), " is not in the store with ",
                                                                 ref.size_bytes, " bytes: put it again")),
                      "BLOB_MISSING");
  };
  if (commit.segment) CHAINFLEET_RETURN_IF_ERROR(check(commit.segment->object));
  ResumePoint& point = prepared->resume_point;
  if (point.object) return check(*point.object);
  if (!MustEncrypt(point)) return absl::OkStatus();
  const BlobRef object{.name = ResumeObjectName(state_->incarnation(), commit.chain, commit.lease_epoch, point.sha256),
                       .size_bytes = std::ssize(point.inline_bytes),
                       .sha256 = point.sha256};
  CHAINFLEET_RETURN_IF_ERROR(Put(object, point.inline_bytes));
  point.object = object;
  point.inline_bytes.clear();
  return absl::OkStatus();
}

}  // namespace chainfleet
