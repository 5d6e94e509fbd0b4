// The fused Langevin update as plain double-precision loops, written from the formulas of kernels/update.h. The
// reference for the fast paths.
#pragma once

#include <vector>

#include "worker/numerics/kernels/update.h"

namespace chainfleet::testing {

// Returns the normal number of parameter `p` (layout order) in (key, stream, t).
double ReferenceNormal(RngKey key, RngStream stream, uint64_t t, int64_t p);

// Updates one row, unpadded. `theta_a` may be null.
void ReferenceUpdate(const RowStep& step, std::vector<double>& theta, std::vector<double>* theta_a,
                     const std::vector<double>& gradient);

}  // namespace chainfleet::testing
