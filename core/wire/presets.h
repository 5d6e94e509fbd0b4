// Settings of published scripts by name: `preset: emcmc-official` in a job file stands for every number of that script
// but model and data set; what the file says itself goes before the preset. Sources: docs/sampling.md.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "chainfleet/v1/jobs.pb.h"

namespace chainfleet {

// `spec` with its preset filled in for `num_examples` N, on which prior (lambda = N wd) and temperature may depend, and
// the preset's name cleared. A message that `spec` sets of its own (sampler, learning_rate, ...) replaces the preset's
// whole. INVALID_ARGUMENT at "preset" listing the names if it is none of them.
absl::StatusOr<v1::JobSpec> ExpandPreset(const v1::JobSpec& spec, int64_t num_examples);

}  // namespace chainfleet
