// The potential of a network with one of the likelihoods and a Gaussian prior on every parameter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

class ResidentDataset;
struct ModelFile;

// U = precision/2 |theta|^2 + (N/n) sum over the minibatch of -log p(target). On a CPU it uses the fused kernels
// (fused_network.h) if they support the network, else ATen operations, chain by chain; on a GPU batched ATen operations
// (eager_network.h). INVALID_ARGUMENT: the plan's model is not a network that fits the data and its targets, its
// augmentation does not fit the images, or `dataset` is null. `module`: the file of a stored network
// (stored_network.h, with its errors). `chains`: the chain of each row, for chains that share calls of operators
// (chain_lanes.h); null: each runs by itself.
absl::StatusOr<std::unique_ptr<Potential>> MakeNetworkPotential(
    const JobPlan& plan, std::shared_ptr<const ResidentDataset> dataset, Device device,
    const ModelFile* module = nullptr, std::shared_ptr<const std::vector<int32_t>> chains = nullptr);

}  // namespace chainfleet
