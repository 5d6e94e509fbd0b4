// Weighted fair share of the fleet among tenants, by device-seconds that count less the longer they lie back.
//
// What a tenant has of the fleet is a mean number of devices: those it holds now, and its mean over the past in which
// an hour ago weighs half as much as an hour that lies a half-life closer. Held constantly, n devices are n of each. A
// slot goes to the tenant with the least of it for its weight. So shares follow the weights over a few half-lives, the
// better the shorter chains are than one; a tenant that was idle has used nothing, which is as much as one that was
// never there: it catches up for a half-life, and not for the months that it was away.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace chainfleet {

inline constexpr double kMaxTenantWeight = 1e6;

struct ShareSettings {
  std::map<std::string, double> weights;  // by tenant, above 0; 1 for all others
  absl::Duration half_life = absl::Hours(24);
};

// Plain data: no lock and no clock; times are of the monotonic clock and never fall. Not thread-safe. What was used is
// not stored: it begins at 0 with each start of a coordinator.
class FairShare {
 public:
  explicit FairShare(ShareSettings settings) : settings_(std::move(settings)) {}

  // From `now` on `tenant` holds so many devices more (a chain's part of its worker's), or less.
  void Hold(const std::string& tenant, double devices, absl::Duration now);

  // Device-seconds up to `now`, decayed.
  double UsedBy(const std::string& tenant, absl::Duration now) const;

  // Chains of one tenant that wait.
  struct Claim {
    std::string tenant;
    int64_t chains = 0;
  };
  // The claims in the order in which they are served, the tenant with the least for its weight first (then by name),
  // each cut down to its part of `slots`. A slot that nobody else wants is anybody's.
  std::vector<Claim> Divide(std::vector<Claim> claims, int64_t slots, double devices_per_slot,
                            absl::Duration now) const;

 private:
  struct Account {
    double devices = 0;  // held since `as_of`
    double used = 0;     // device-seconds up to `as_of`, decayed
    absl::Duration as_of;
  };

  double Used(const Account& account, absl::Duration now) const;
  // Half past, half present, for one of weight.
  double LoadOf(const std::string& tenant, double more_devices, absl::Duration now) const;

  const ShareSettings settings_;
  std::map<std::string, Account> accounts_;  // by tenant
};

}  // namespace chainfleet
