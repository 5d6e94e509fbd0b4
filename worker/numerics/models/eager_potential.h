// The network potential in ATen operations: the GPU's, and a reference on a CPU.
#pragma once

#include <memory>

#include "core/domain/dataset.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/models/architecture.h"
#include "worker/numerics/potential.h"

namespace chainfleet {

// Keeps a copy of the data set on `device`, in its stored type. Gradients by autograd through detached leaf views of
// the arena.
std::unique_ptr<Potential> MakeEagerPotential(Architecture architecture, std::shared_ptr<const Layout> layout,
                                              std::shared_ptr<const ResidentDataset> dataset,
                                              const Normalisation& normalisation, double prior_precision,
                                              Device device);

}  // namespace chainfleet
