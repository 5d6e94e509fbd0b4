// Settings of published scripts by name: `preset: emcmc-official` in a job file sets every number of that script except
// model and data set. Settings in the file override the preset. Sources: docs/explanation/sampling.md.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "chainfleet/v1/jobs.pb.h"

namespace chainfleet {

// The data that a preset's numbers may depend on.
struct PresetData {
  int64_t num_examples = 1;  // N, which sets the prior (lambda = N wd) and the temperature
  int64_t num_classes = 0;   // 100 selects the scripts' settings for CIFAR-100
};

// Fills in the preset of `spec` for this data and built-in network (some scripts have numbers for a network), and
// clears the preset's name. A message that `spec` sets (sampler, learning_rate, ...) replaces the preset's whole
// message. INVALID_ARGUMENT at "preset" lists the names if the name is unknown.
absl::StatusOr<v1::JobSpec> ExpandPreset(const v1::JobSpec& spec, const PresetData& data);

}  // namespace chainfleet
