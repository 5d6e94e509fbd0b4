// Settings of published scripts by name: `preset: emcmc-official` in a job file stands for every number of that script
// but model and data set; what the file says itself goes before the preset. Sources: docs/explanation/sampling.md.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "chainfleet/v1/jobs.pb.h"

namespace chainfleet {

// The data that a preset's numbers may depend on.
struct PresetData {
  int64_t num_examples = 1;  // N: prior (lambda = N wd) and temperature
  int64_t num_classes = 0;   // with 100 the scripts take their settings for CIFAR-100
};

// `spec` with its preset filled in for this data and the built-in network it names (the scripts have numbers of their
// own for some), and the preset's name cleared. A message that `spec` sets of its own (sampler, learning_rate, ...)
// replaces the preset's whole. INVALID_ARGUMENT at "preset" listing the names if it is none of them.
absl::StatusOr<v1::JobSpec> ExpandPreset(const v1::JobSpec& spec, const PresetData& data);

}  // namespace chainfleet
