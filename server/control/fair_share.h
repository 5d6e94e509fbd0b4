// Weighted fair share of the fleet among tenants, by device-seconds that decay with age.
//
// The load of a tenant is a number of devices: the devices that it holds now, plus its mean over the past, weighted so
// that use counts half as much for each half-life of age. A constant n devices count as n in each of the two. A slot
// goes to the tenant with the least load per weight. Shares therefore follow the weights over a few half-lives, the
// better the shorter chains are than one. A tenant that was idle counts like a new one: it catches up for one
// half-life, not for the months of its absence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/per_tenant.h"

namespace chainfleet {

inline constexpr double kMaxTenantWeight = 1e6;

struct ShareSettings {
  PerTenant<double> weights = 1;  // above 0
  absl::Duration half_life = absl::Hours(24);
};

// Plain data: no lock and no clock. Times are monotonic and never decrease. The use is not stored: it starts at 0 with
// each start of a coordinator. Not thread-safe.
class FairShare {
 public:
  explicit FairShare(ShareSettings settings) : settings_(std::move(settings)) {}

  // Adds `devices` (a chain's share of its worker's devices) to the devices that `tenant` holds from `now` on; may be
  // negative.
  void Hold(const std::string& tenant, double devices, absl::Duration now);

  // Returns the decayed device-seconds up to `now`.
  double UsedBy(const std::string& tenant, absl::Duration now) const;

  // Waiting chains of one tenant.
  struct Claim {
    std::string tenant;
    int64_t chains = 0;
  };
  // Returns the claims in the order in which they are served (least load per weight first, then by name), each reduced
  // to its part of `slots`. A slot that no other tenant wants goes to any tenant.
  std::vector<Claim> Divide(std::vector<Claim> claims, int64_t slots, double devices_per_slot,
                            absl::Duration now) const;

 private:
  struct Account {
    double devices = 0;  // held since `as_of`
    double used = 0;     // decayed device-seconds up to `as_of`
    absl::Duration as_of;
  };

  double Used(const Account& account, absl::Duration now) const;
  // Returns the load per weight: devices held, `more_devices`, and the decayed mean of the past.
  double LoadOf(const std::string& tenant, double more_devices, absl::Duration now) const;

  const ShareSettings settings_;
  std::map<std::string, Account> accounts_;  // by tenant
};

}  // namespace chainfleet
