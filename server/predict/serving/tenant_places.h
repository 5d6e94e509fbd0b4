// Fairness among tenants who wait for the same thing. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status.h"

namespace chainfleet {

// A bounded number of places. When all are taken, a tenant with less than its equal share of them may enter all the
// same, until all together have twice as many.
class TenantPlaces {
 public:
  explicit TenantPlaces(int64_t places) : places_(places) {}

  // RESOURCE_EXHAUSTED / QUEUE_FULL of `bound`. `what` waits: "predictions".
  absl::Status CheckRoom(const std::string& tenant, const char* what, const char* bound) const {
    const auto found = of_.find(tenant);
    const int64_t own = found == of_.end() ? 0 : found->second;
    const auto tenants = static_cast<int64_t>(of_.size()) + (own == 0 ? 1 : 0);
    if (num_ < places_ || (own < places_ / tenants && num_ < 2 * places_)) return absl::OkStatus();
    return BoundReached(
        bound, absl::StrCat(num_, " ", what, " wait already, ", own, " of tenant ", tenant, ": retry with backoff"),
        "QUEUE_FULL");
  }
  void Enter(const std::string& tenant) {
    ++num_;
    ++of_[tenant];
  }
  void Leave(const std::string& tenant) {
    --num_;
    if (--of_[tenant] == 0) of_.erase(tenant);
  }

 private:
  const int64_t places_;
  int64_t num_ = 0;
  std::map<std::string, int64_t> of_;
};

// Remembers the tenants who came within the last second.
class RecentTenants {
 public:
  // `now` is monotonic.
  void Came(const std::string& tenant, absl::Duration now) { came_[tenant] = now; }
  // True if another tenant than this one came.
  bool OthersCame(const std::string& tenant, absl::Duration now) {
    std::erase_if(came_, [&](const auto& each) { return now - each.second > kRecently; });
    return came_.size() > came_.count(tenant);
  }

 private:
  static constexpr absl::Duration kRecently = absl::Seconds(1);
  std::map<std::string, absl::Duration> came_;
};

// Delays refusals. Clients that repeat refused requests at once would cost more than their work. If all of a tenant's
// clients repeated at the same time, others would wait for them: so its refusals leave one after another.
class RefusalTimes {
 public:
  static constexpr absl::Duration kDelay = absl::Milliseconds(100), kSpacing = absl::Milliseconds(5),
                                  kLongest = absl::Seconds(1);

  // Returns the delay of a refusal at `now`: kDelay, or until kSpacing after the tenant's last one, but at most
  // kLongest and half of the time until `deadline`. Both times are monotonic.
  absl::Duration Wait(const std::string& tenant, absl::Duration now, absl::Duration deadline) {
    std::erase_if(last_, [&](const auto& each) { return each.second < now; });
    absl::Duration& last = last_.try_emplace(tenant, now).first->second;
    last = std::clamp(last + kSpacing, now + kDelay, now + kLongest);
    return std::clamp((deadline - now) / 2, absl::ZeroDuration(), last - now);
  }

 private:
  std::map<std::string, absl::Duration> last_;  // by tenant: the last refusal to come
};

}  // namespace chainfleet
