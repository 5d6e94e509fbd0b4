// The requirements of samplers that derive networks from trained ones on the rest of a job.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/job_spec.h"
#include "core/domain/parameter_shape.h"
#include "core/domain/stored_model.h"

namespace chainfleet {

inline constexpr int64_t kMaxFullCurvatureParameters = 4096;  // a matrix of 128 MiB, and its factor

// True for swa and swag, which average snapshots of a training run. The draws in a file of init.weights are snapshots,
// too, before those of the job's own steps.
bool AveragesSnapshots(const SamplerSpec& sampler);

// Returns a violation for each file of init.weights with fewer than two draws if such a sampler takes no steps of its own.
std::vector<FieldViolation> ValidateSnapshots(const JobSpec& spec, const std::vector<StoredModel>& weights);

// Checks without shapes. REQUIRES: `spec.model` has passed Validate. Other samplers have no violations.
std::vector<FieldViolation> ValidatePostHoc(const JobSpec& spec);

// Checks with the model's parameters: a full curvature matrix is valid only up to
// kMaxFullCurvatureParameters.
std::vector<FieldViolation> ValidatePostHocSize(const SamplerSpec& sampler,
                                                const std::vector<ParameterShape>& parameters);

// Returns rough bytes of laplace's curvature sums and their factors; 0 for other samplers.
int64_t CurvatureBytes(const SamplerSpec& sampler, const std::vector<ParameterShape>& parameters);

}  // namespace chainfleet
