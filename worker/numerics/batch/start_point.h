// Where a chain starts.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/rng_key.h"
#include "core/domain/init_spec.h"
#include "worker/numerics/arena/layout.h"

namespace chainfleet {

// theta [D] of chain `index`, whose key is `key`, before its first step: the row of `init.theta`, which has passed
// ValidateForSize, or else uniform(-1/sqrt(fan_in), 1/sqrt(fan_in)), tensors without inputs (of norms) at their initial
// value; then `init.perturb` times a standard normal. Random numbers are those of kInit, so each chain has its own.
std::vector<float> StartOfChain(const Layout& layout, const InitSpec& init, int32_t index, RngKey key);

}  // namespace chainfleet
