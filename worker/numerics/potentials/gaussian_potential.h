// The analytic potential whose laws every kernel is held to: a Gaussian, independent or of any covariance
// (core/domain/potential_spec.h).
#pragma once

#include <memory>

#include "core/domain/potential_spec.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// N = 1; batches are ignored. energy and gradient are those of U itself, the prior being part of it; U is 0 at the
// mean. `density` has passed Validate, `layout` has its one tensor.
std::unique_ptr<Potential> MakeGaussianPotential(const GaussianPotential& density, std::shared_ptr<const Layout> layout,
                                                 Device device);

}  // namespace chainfleet
