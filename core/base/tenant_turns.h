// Fair turns of tenants who wait for the same thing. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace chainfleet {

// The work that a tenant is ahead of the others, in any unit, before and after its turn.
struct TenantTurn {
  uint64_t begin = 0, end = 0;
};

// A queue that serves the smallest `begin` first serves a tenant with few waiting after one of each other tenant at
// most; one that serves the smallest `end` first lets little work overtake much (start-time fair queueing, Goyal et
// al., SIGCOMM 1996, and its order by finish tags). Neither lets a tenant wait forever.
class TenantTurns {
 public:
  TenantTurn Take(const std::string& tenant, uint64_t work = 1) {
    uint64_t& next = next_[tenant];
    const uint64_t begin = std::max(next, now_);
    next = begin + work;
    return {begin, next};
  }
  // The tenant does not need its turn after all. No effect if it has taken another one since.
  void GiveBack(const std::string& tenant, const TenantTurn& turn) {
    const auto it = next_.find(tenant);
    if (it != next_.end() && it->second == turn.end) it->second = turn.begin;
  }
  // Called with the `begin` of a turn that is served.
  void Served(uint64_t begin) { now_ = std::max(now_, begin); }
  // Forgets the tenants: nobody waits.
  void Forget() { next_.clear(); }

 private:
  uint64_t now_ = 0;
  std::map<std::string, uint64_t> next_;
};

}  // namespace chainfleet
