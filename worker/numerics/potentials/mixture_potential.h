// A mixture of Gaussians as an analytic potential: more than one mode, with closed-form moments.
#pragma once

#include <memory>

#include "core/domain/potential_spec.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// U = -log density, less (2 pi)^(D / 2). N = 1; batches are ignored. `density` has passed Validate, `layout` has its
// one tensor. Any device; the arithmetic is the host's.
std::unique_ptr<Potential> MakeMixturePotential(const GaussianMixturePotential& density,
                                                std::shared_ptr<const Layout> layout);

}  // namespace chainfleet
