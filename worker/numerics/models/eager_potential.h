// The network potential in ATen operations, for any list of layers, on a GPU or a CPU.
#pragma once

#include <memory>

#include "core/domain/network_shape.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/models/network_settings.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

class StoredNetwork;

// kTogether: all chains in one call, for a GPU. kApart: each chain on its own thread, so that its bits depend neither
// on other chains nor on the number of threads; for a CPU. kInLanes: likewise kChainLanes chains in a call
// (chain_lanes.h).
enum class ChainBatching { kTogether, kApart, kInLanes };

// The number of chains whose minibatches of `batch_size` are processed together, at least one. None of their tensors
// then has 2^31 elements, at which GPU libraries fail.
int64_t MostChainsTogether(const NetworkShape& network, int64_t batch_size);

// Keeps a copy of the data set on `device`, in its stored type. With `script` the network is a stored one, which runs
// kTogether only if it takes several chains, and `network` is its shape. Gradients come from autograd through detached
// leaf views of the arena.
std::unique_ptr<Potential> MakeEagerPotential(NetworkShape network, std::shared_ptr<const Layout> layout,
                                              std::shared_ptr<const ResidentDataset> dataset,
                                              const NetworkSettings& settings, Device device, ChainBatching batching,
                                              std::shared_ptr<const StoredNetwork> script = nullptr);

}  // namespace chainfleet
