// The network potential on a CPU.
#pragma once

#include <memory>

#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/models/architecture.h"
#include "worker/numerics/models/network_settings.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// If there are at least as many chains as threads, each thread computes a chain from start to end. The remaining chains
// are computed one after the other, with their slices and parts distributed over the threads. The bits are the same
// either way. Memory: one workspace per thread, sized for the largest minibatch so far. `architecture` is that of
// `network`.
std::unique_ptr<Potential> MakeFusedPotential(Architecture architecture, NetworkShape network,
                                              std::shared_ptr<const Layout> layout,
                                              std::shared_ptr<const ResidentDataset> dataset,
                                              const NetworkSettings& settings);

}  // namespace chainfleet
