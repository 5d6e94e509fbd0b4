#include "server/intake/upload_limits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {

absl::Status UploadShare::Add(int64_t bytes) {
  if (!tenant_.empty() && !own_.Add(bytes)) {
    const absl::Status refused =
        WithReason(absl::ResourceExhaustedError(absl::StrCat(
                       "the uploads of tenant ", tenant_, " hold the ", all_.max_bytes() / 2 / limits::kMiB,
                       " MiB that one tenant may: try again when another upload has ended")),
                   "TENANT_LIMIT");
    return WithRetryAfter(WithBound(refused, "tenant_uploads"), absl::Seconds(1));
  }
  if (share_.Add(bytes) && (tenant_.empty() || of_tenant_.held_bytes() <= all_.max_bytes() - all_.held_bytes())) {
    return absl::OkStatus();
  }
  return WithBound(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                  "uploads in progress leave too little of the ", all_.max_bytes() / limits::kMiB,
                                  " MiB for them, of which a tenant may hold no more than it leaves free: try again "
                                  "later")),
                              "UPLOADS_FULL"),
                   "uploads");
}

absl::Status DatasetReads::Schedule(std::function<void()> read) {
  if (++*unfinished_ > width_ + limits::kWaitingDatasetReads) {
    --*unfinished_;
    const std::string message =
        absl::StrCat(limits::kWaitingDatasetReads, " data sets named by URI wait to be read already: try again later");
    return WithBound(WithReason(absl::ResourceExhaustedError(message), "UPLOADS_FULL"), "dataset_reads");
  }
  turns_.Schedule([read = std::move(read), unfinished = unfinished_] {
    read();
    --*unfinished;
  });
  return absl::OkStatus();
}

}  // namespace chainfleet
