// U(theta) = precision/2 |theta|^2: the analytic potential whose laws every kernel is held to.
#pragma once

#include <memory>

#include "core/domain/model_spec.h"
#include "worker/numerics/potential.h"

namespace chainfleet {

// N = 1; batches are ignored. energy and gradient are those of U itself, the prior being part of it.
std::unique_ptr<Potential> MakeGaussianPotential(const GaussianPotential& density, std::shared_ptr<const Layout> layout,
                                                 Device device);

}  // namespace chainfleet
