// Priors other than one Gaussian precision for all parameters: adds the prior's energy and gradient to a potential.
#pragma once

#include <memory>
#include <vector>

#include "worker/numerics/kernels/prior_density.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// Returns `likelihood` itself if prior_precision() gives the prior (a Gaussian of one precision, or a flat prior), else
// a potential that adds `prior` to it; `likelihood` then has a flat prior. A Gaussian by layer names layers of the
// layout (ValidateForLayers). On the host a row is cut in the same way whatever C and the threads are.
std::unique_ptr<Potential> WithPrior(const PriorSpec& prior, std::unique_ptr<Potential> likelihood);

// The prior density of each parameter tensor of `layout`.
std::vector<PriorDensity> DensitiesOf(const PriorSpec& prior, const Layout& layout);

// energy[C] += -log prior; gradient += its gradient, unless null. On the host, in one pass over each row.
void AddPriors(const std::vector<PriorDensity>& of_tensor, const ThetaArena& theta, ThetaArena* gradient,
               double* energy);

// As AddPriors, by ATen operations, on any device.
void AddPriorsByTensor(const std::vector<PriorDensity>& of_tensor, const ThetaArena& theta, ThetaArena* gradient,
                       double* energy);

}  // namespace chainfleet
