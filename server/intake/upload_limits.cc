#include "server/intake/upload_limits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {

absl::Status UploadShare::Add(int64_t bytes) {
  if (!tenant_.empty() && !own_.Add(bytes)) {
    const std::string message =
        absl::StrCat("the uploads of tenant ", tenant_, " hold the ", all_.max_bytes() / 2 / limits::kMiB,
                     " MiB that one tenant may: try again when another upload has ended");
    return WithRetryAfter(BoundReached("tenant_uploads", message, "TENANT_LIMIT"), absl::Seconds(1));
  }
  if (share_.Add(bytes) && (tenant_.empty() || of_tenant_.held_bytes() <= all_.max_bytes() - all_.held_bytes())) {
    return absl::OkStatus();
  }
  return BoundReached(
      "uploads",
      absl::StrCat("uploads in progress leave too little of the ", all_.max_bytes() / limits::kMiB,
                   " MiB for them, of which a tenant may hold no more than it leaves free: try again later"),
      "UPLOADS_FULL");
}

absl::Status DatasetReads::Schedule(std::function<void()> read) {
  if (++*unfinished_ > width_ + limits::kWaitingDatasetReads) {
    --*unfinished_;
    return BoundReached(
        "dataset_reads",
        absl::StrCat(limits::kWaitingDatasetReads, " data sets named by URI wait to be read already: try again later"),
        "UPLOADS_FULL");
  }
  turns_.Schedule([read = std::move(read), unfinished = unfinished_] {
    read();
    --*unfinished;
  });
  return absl::OkStatus();
}

}  // namespace chainfleet
