// Estimates the memory that one chain takes on its device, to pack chains into batches and to reject chains that no
// machine can hold. Also estimates the bytes that a job's draws take in the store.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/job_spec.h"
#include "core/domain/sampler_spec.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

// Returns an upper bound on the number of tensors of theta's size in a chain's state: theta, momenta, averages and
// deviations.
int64_t StateCopies(const SamplerSpec& sampler);

// Returns rough bytes: the state and its copy for a resume point, gradient, proposals, curvature, and the activations
// of a batch with their gradients. A stored TorchScript module, whose parameters only a worker knows, counts in full.
// Returns 0 if shapes do not fit. Saturates (core/base/saturating.h).
int64_t EstimateChainBytes(const JobSpec& spec, const std::vector<int64_t>& input_shape, int64_t num_classes,
                           const StoredModel* stored = nullptr);

// Returns the bytes of one draw with all its kinds, float32; 0 if shapes do not fit. A stored module counts in full.
int64_t EstimateDrawBytes(const JobPlan& plan);

// Returns the most bytes of draws that the job keeps at a time; a stop rule or a TTL may leave fewer. Saturates.
int64_t EstimateStoredBytes(const JobPlan& plan);

}  // namespace chainfleet
