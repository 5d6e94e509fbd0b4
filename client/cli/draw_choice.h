// The options that choose draws of a version of a job, for predict and evaluate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "chainfleet/v1/predict.pb.h"

namespace chainfleet {

// Values of the options; 0 or empty if an option was not given.
struct DrawChoice {
  std::vector<std::string> kinds;
  std::vector<int32_t> chains;
  int64_t members = 0, every = 0, max_draws = 0, version = 0;
  bool include_failed = false;
};

// --kinds, --chains, --members, --every, --max-draws, --version and --include-failed.
void AddDrawChoice(CLI::App* verb, DrawChoice* choice);

v1::DrawSelection SelectionOf(const DrawChoice& choice);

}  // namespace chainfleet
