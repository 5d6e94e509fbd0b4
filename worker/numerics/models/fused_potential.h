// The network potential on a CPU.
#pragma once

#include <memory>

#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/models/architecture.h"
#include "worker/numerics/models/network_settings.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// As many chains as there are threads are worked on at once, each from start to end by one thread; the rest, when there
// are fewer chains than threads, share out the slices and parts of one chain after the other. Same bits either way.
// Memory: one workspace per thread, made for the largest batch seen.
// `architecture` is that of `network`.
std::unique_ptr<Potential> MakeFusedPotential(Architecture architecture, NetworkShape network,
                                              std::shared_ptr<const Layout> layout,
                                              std::shared_ptr<const ResidentDataset> dataset,
                                              const NetworkSettings& settings);

}  // namespace chainfleet
