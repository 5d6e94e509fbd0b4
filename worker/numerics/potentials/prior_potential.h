// Priors beyond one Gaussian precision for all parameters: a potential with the prior's energy and gradient added.
#pragma once

#include <memory>
#include <vector>

#include "worker/numerics/kernels/prior_density.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// `likelihood` itself if it states the prior by prior_precision() (a Gaussian of one precision, a flat prior), else a
// potential that adds `prior` to it; `likelihood` then has a flat one. A Gaussian by layer names layers that the
// layout has (ValidateForLayers). On the host the pass over a row is cut the same way whatever C and the threads.
std::unique_ptr<Potential> WithPrior(const PriorSpec& prior, std::unique_ptr<Potential> likelihood);

// The density of each parameter tensor of `layout`.
std::vector<PriorDensity> DensitiesOf(const PriorSpec& prior, const Layout& layout);

// energy[C] += -log prior; gradient += its gradient, unless null. On the host in one pass over each row.
void AddPriors(const std::vector<PriorDensity>& of_tensor, const ThetaArena& theta, ThetaArena* gradient,
               double* energy);

// The same by ATen operations, on any device.
void AddPriorsByTensor(const std::vector<PriorDensity>& of_tensor, const ThetaArena& theta, ThetaArena* gradient,
                       double* energy);

}  // namespace chainfleet
