// The rules of samplers with microcanonical dynamics, `mile` and `smile`.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/domain/job_spec.h"

namespace chainfleet {

// Checks without data. REQUIRES: `spec.model` has passed Validate. A job of another sampler has no violations.
std::vector<FieldViolation> ValidateMicrocanonical(const JobSpec& spec);

// Refuses models of one parameter. `parameters`: those of the model.
std::vector<FieldViolation> ValidateMicrocanonicalSize(const SamplerSpec& sampler,
                                                       const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
