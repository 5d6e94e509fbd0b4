// Estimates of the memory that one chain takes on its device, used to pack chains into batches and to refuse chains
// that no machine can hold; and of the bytes that a job's draws take in the store.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/job_spec.h"
#include "core/domain/sampler_spec.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

// An upper bound on the tensors of theta's size in a chain's state: theta itself, momenta, averages,
// deviations.
int64_t StateCopies(const SamplerSpec& sampler);

// Rough bytes: state and its copy for a resume point, gradient and proposals, curvature, and the activations of a batch
// with their gradients. `module_bytes`: of a stored module, whose parameters only a worker knows: all that is in it. 0
// if shapes do not fit. Saturates (core/base/saturating.h).
int64_t EstimateChainBytes(const JobSpec& spec, const std::vector<int64_t>& input_shape, int64_t num_classes,
                           int64_t module_bytes = 0);

// Bytes of one draw with all its kinds, float32. A stored module counts with its whole size. 0 if shapes do not fit.
int64_t EstimateDrawBytes(const JobPlan& plan);

// Bytes of the most draws that the job keeps at a time; a stop rule or a time to live may leave fewer. Saturates.
int64_t EstimateStoredBytes(const JobPlan& plan);

}  // namespace chainfleet
