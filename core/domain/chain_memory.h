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
// of a batch with their gradients; with some samplers also numbers for each of `num_examples`, on the host. A stored
// TorchScript module, whose parameters only a worker knows, counts in full. Returns 0 if shapes do not fit. Saturates
// (core/base/saturating.h).
int64_t EstimateChainBytes(const JobSpec& spec, const std::vector<int64_t>& input_shape, int64_t num_classes,
                           const StoredModel* stored = nullptr, int64_t num_examples = 0);

// Returns the bytes of one draw with all its kinds, float32; 0 if shapes do not fit. A stored module counts in full.
int64_t EstimateDrawBytes(const JobPlan& plan);
// The same for callers that know the number of parameters, 0 if shapes do not fit: infers no shapes.
int64_t EstimateDrawBytes(const JobPlan& plan, int64_t num_parameters);

// Returns the most bytes of draws that the job keeps at a time; a stop rule or a TTL may leave fewer. Saturates.
int64_t EstimateStoredBytes(const JobPlan& plan);
int64_t EstimateStoredBytes(const JobPlan& plan, int64_t draw_bytes);  // `draw_bytes`: by EstimateDrawBytes

}  // namespace chainfleet
