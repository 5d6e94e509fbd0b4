// Bounds on the rows that each tenant may predict in a second.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/per_tenant.h"
#include "core/base/status.h"

namespace chainfleet {

// One token bucket for each tenant, which holds the rows of a second. A larger request takes them in advance.
// Thread-safe.
class RowRates {
 public:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  explicit RowRates(PerTenant<int64_t> rows_per_second) : rates_(std::move(rows_per_second)) {}

  // RESOURCE_EXHAUSTED / TENANT_LIMIT, with the time to wait.
  absl::Status Take(const std::string& tenant, int64_t rows, absl::Duration now) {
    const int64_t bound = rates_.For(tenant);
    if (bound == kNone) return absl::OkStatus();
    const auto rate = static_cast<double>(bound);
    MutexLock lock(&mutex_);
    Bucket& bucket = buckets_.try_emplace(tenant, Bucket{rate, now}).first->second;
    bucket.rows = std::min(rate, bucket.rows + absl::ToDoubleSeconds(now - bucket.filled) * rate);
    bucket.filled = now;
    const double missing = std::min(rate, static_cast<double>(rows)) - bucket.rows;
    if (missing <= 0) {
      bucket.rows -= static_cast<double>(rows);
      return absl::OkStatus();
    }
    const absl::Duration wait = absl::Ceil(absl::Seconds(missing / rate), absl::Milliseconds(1));
    const std::string message =
        absl::StrCat("tenant ", tenant, " may predict ", bound, " rows a second (--tenant-rows-per-second): try ", rows,
                     " rows again in ", absl::FormatDuration(wait));
    return WithRetryAfter(BoundReached("tenant_rows_per_second", message, "TENANT_LIMIT"), wait);
  }

  // Returns the rows of a request that got no place after all.
  void GiveBack(const std::string& tenant, int64_t rows) {
    const int64_t bound = rates_.For(tenant);
    if (bound == kNone) return;
    MutexLock lock(&mutex_);
    Bucket& bucket = buckets_.at(tenant);
    bucket.rows = std::min(static_cast<double>(bound), bucket.rows + static_cast<double>(rows));
  }

 private:
  struct Bucket {
    double rows = 0;
    absl::Duration filled;  // monotonic
  };
  const PerTenant<int64_t> rates_;
  Mutex mutex_;
  std::map<std::string, Bucket> buckets_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
