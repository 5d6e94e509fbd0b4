// The network potential in ATen operations: any list of layers, on a GPU and on a CPU.
#pragma once

#include <memory>

#include "core/domain/network_shape.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/models/network_settings.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

class ScriptedNetwork;

// kTogether: all chains in one call, the way of a GPU. kApart: each chain on a thread of its own, so that a chain's
// bits depend neither on the others nor on the threads; the way of a CPU.
enum class ChainBatching { kTogether, kApart };

// How many chains' batches of `batch_size` go together: no tensor of theirs has 2^31 elements, from which on libraries
// of a GPU fail. At least one.
int64_t MostChainsTogether(const NetworkShape& network, int64_t batch_size);

// Keeps a copy of the data set on `device`, in its stored type. `script`: the network is a module, which goes kApart,
// and `network` its shape. Gradients by autograd through detached leaf views of the arena.
std::unique_ptr<Potential> MakeEagerPotential(NetworkShape network, std::shared_ptr<const Layout> layout,
                                              std::shared_ptr<const ResidentDataset> dataset,
                                              const NetworkSettings& settings, Device device, ChainBatching batching,
                                              std::shared_ptr<const ScriptedNetwork> script = nullptr);

}  // namespace chainfleet
