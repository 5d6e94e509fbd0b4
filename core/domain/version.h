// Versions of a job and the names that tenants give them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace chainfleet {

// An immutable row. The version holds the first draws of each chain; the row says how many.
struct Version {
  std::string job;
  int64_t number = 0;                   // from 1
  std::vector<int64_t> draws_of_chain;  // number of draws, by chain index
  absl::Time created_at;
  static void Fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("number", self.number);
    visit("draws_of_chain", self.draws_of_chain);
    visit("created", self.created_at);
  }

  int64_t DrawsOf(int32_t chain) const {
    const auto index = static_cast<size_t>(chain);
    return index < draws_of_chain.size() ? draws_of_chain[index] : 0;
  }
  int64_t num_draws() const { return std::accumulate(draws_of_chain.begin(), draws_of_chain.end(), int64_t{0}); }
};

// A tenant's name for one version of one job. The name moves to another version in one step.
struct Alias {
  std::string tenant, name;  // the name is neither that of a job of the tenant nor a job's id
  std::string job;           // id
  int64_t number = 0;        // an existing version
  static void Fields(auto& self, auto&& visit) {
    visit("tenant", self.tenant);
    visit("name", self.name);
    visit("job", self.job);
    visit("number", self.number);
  }
  bool operator==(const Alias&) const = default;
};

}  // namespace chainfleet
