#include "server/intake/upload_limits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {

absl::Status UploadShare::Add(int64_t bytes) {
  if (!tenant_.empty() && !own_.Add(bytes)) {
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat("the uploads of tenant ", tenant_, " hold the ", max_bytes_ / 2 / limits::kMiB,
                                       " MiB that one tenant may: try again when another upload has ended")),
                      "TENANT_LIMIT");
  }
  if (share_.Add(bytes)) return absl::OkStatus();
  return WithReason(
      absl::ResourceExhaustedError(absl::StrCat("the uploads that this server takes at the moment fill the ",
                                                max_bytes_ / limits::kMiB, " MiB it has for them: try again later")),
      "UPLOADS_FULL");
}

absl::Status DatasetReads::Schedule(std::function<void()> read) {
  if (++*unfinished_ > width_ + limits::kWaitingDatasetReads) {
    --*unfinished_;
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat(limits::kWaitingDatasetReads,
                                                  " data sets named by URI wait to be read already: try again later")),
        "UPLOADS_FULL");
  }
  turns_.Schedule([read = std::move(read), unfinished = unfinished_] {
    read();
    --*unfinished;
  });
  return absl::OkStatus();
}

}  // namespace chainfleet
