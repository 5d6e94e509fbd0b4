#include "server/intake/upload_limits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {

absl::Status UploadShare::Add(int64_t bytes) {
  if (share_.Add(bytes)) return absl::OkStatus();
  const int64_t most = budget_.max_bytes(), most_of_tenant = most / 2;
  if (!tenant().empty() && bytes > most_of_tenant - budget_.held_bytes(tenant())) {
    const std::string message =
        absl::StrCat("the uploads of tenant ", tenant(), " hold the ", most_of_tenant / limits::kMiB,
                     " MiB that one tenant may: try again when another upload has ended");
    return WithRetryAfter(BoundReached("tenant_uploads", message, "TENANT_LIMIT"), absl::Seconds(1));
  }
  return BoundReached(
      "uploads",
      absl::StrCat("uploads in progress leave too little of the ", most / limits::kMiB,
                   " MiB for them, of which a tenant may hold at most half of what others do not use: try again later"),
      "UPLOADS_FULL");
}

absl::Status DatasetReads::Schedule(const std::string& tenant, std::function<void()> read) {
  MutexLock lock(&unfinished_->mutex);
  std::multiset<std::string>& tenants = unfinished_->tenants;
  if (!tenant.empty() && tenants.count(tenant) >= limits::kWaitingDatasetReads / 2) {
    const std::string message = absl::StrCat("tenant ", tenant, " has ", limits::kWaitingDatasetReads / 2,
                                             " reads of data sets and models named by URI that wait or run, and may "
                                             "have no more: try again when one of them has ended");
    return WithRetryAfter(BoundReached("tenant_dataset_reads", message, "TENANT_LIMIT"), absl::Seconds(1));
  }
  if (tenants.size() >= width_ + limits::kWaitingDatasetReads) {
    return BoundReached(
        "dataset_reads",
        absl::StrCat(limits::kWaitingDatasetReads, " data sets named by URI wait to be read already: try again later"),
        "UPLOADS_FULL");
  }
  turns_.Schedule([place = tenants.insert(tenant), read = std::move(read), unfinished = unfinished_] {
    read();
    MutexLock lock(&unfinished->mutex);
    unfinished->tenants.erase(place);
  });
  return absl::OkStatus();
}

}  // namespace chainfleet
