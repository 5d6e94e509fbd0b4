// Requirements on the rest of a job by the samplers that derive networks from a trained one (mc_dropout, laplace).
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/job_spec.h"
#include "core/domain/parameter_shape.h"

namespace chainfleet {

inline constexpr int64_t kMaxFullCurvatureParameters = 4096;  // a matrix of 128 MiB, and its factor

// Without shapes: `spec.model` has passed Validate. Nothing for other samplers.
std::vector<FieldViolation> ValidatePostHoc(const JobSpec& spec);

// The same with the model's parameters in place: a matrix of all of them only up to
// kMaxFullCurvatureParameters.
std::vector<FieldViolation> ValidatePostHocSize(const SamplerSpec& sampler,
                                                const std::vector<ParameterShape>& parameters);

// Rough bytes of what laplace holds beside the chain: sums of curvature, then their factors. 0 for other samplers.
int64_t CurvatureBytes(const SamplerSpec& sampler, const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
