// The fused Langevin update as plain double-precision loops, straight from the formulas of kernels/update.h: what the
// fast paths are held to.
#pragma once

#include <vector>

#include "worker/numerics/kernels/update.h"

namespace chainfleet::testing {

// The normal of parameter `p` (layout order) in (key, stream, t).
double ReferenceNormal(RngKey key, RngStream stream, uint64_t t, int64_t p);

// One row, unpadded. `theta_a` may be null.
void ReferenceUpdate(const RowStep& step, std::vector<double>& theta, std::vector<double>* theta_a,
                     const std::vector<double>& gradient);

}  // namespace chainfleet::testing
