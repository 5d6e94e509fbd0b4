// The start of a chain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/domain/init_spec.h"
#include "worker/numerics/arena/layout.h"

namespace chainfleet {

// theta [D] of chain `index` with key `key`, before its first step: the row of `init.theta` (which has passed
// ValidateForSize), or uniform(-1/sqrt(fan_in), 1/sqrt(fan_in)), with tensors without inputs (of norms) at their
// initial value; plus `init.perturb` times a standard normal. The random numbers are those of kInit, so each chain has
// its own. `init.model` and `init.weights` replace the values of the tensors that the model's file and `weights`, the
// bytes of a safetensors file, have. INVALID_ARGUMENT: the file is absent, damaged, WhyNoStart has an objection, or a
// value is not finite.
absl::StatusOr<std::vector<float>> StartOfChain(const Layout& layout, const InitSpec& init, int32_t index, RngKey key,
                                                const std::string* weights = nullptr);

}  // namespace chainfleet
