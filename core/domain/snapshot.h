// A version of a job: an immutable row that says how many draws of each chain belong to it (protocol 7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace chainfleet {

struct Snapshot {
  std::string job;
  int64_t number = 0;                   // from 1
  std::vector<int64_t> draws_of_chain;  // by chain index
  absl::Time created_at;
};

}  // namespace chainfleet
