// A mixture of Gaussians as an analytic potential with several modes and closed-form moments.
#pragma once

#include <memory>

#include "core/domain/potential_spec.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// U = -log density, without the factor (2 pi)^(D / 2). N = 1; minibatches are ignored. `density` has passed Validate,
// `layout` has its one tensor. Works on any device; the host does the arithmetic.
std::unique_ptr<Potential> MakeMixturePotential(const GaussianMixturePotential& density,
                                                std::shared_ptr<const Layout> layout);

}  // namespace chainfleet
