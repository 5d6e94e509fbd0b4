// The analytic potential with which every kernel is tested: a Gaussian, with independent coordinates or any covariance
// (core/domain/potential_spec.h).
#pragma once

#include <memory>

#include "core/domain/potential_spec.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// N = 1; minibatches are ignored. energy and gradient are those of U itself, of which the prior is a part; U is 0 at
// the mean. `density` has passed Validate, `layout` has its one tensor.
std::unique_ptr<Potential> MakeGaussianPotential(const GaussianPotential& density, std::shared_ptr<const Layout> layout,
                                                 Device device);

}  // namespace chainfleet
