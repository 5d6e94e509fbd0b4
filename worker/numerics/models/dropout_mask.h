// The masks of dropout: functions of the chain's key, the step and the position, on every device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// [chains, values] with the type and device of `like`: 1 / (1 - rate) with probability 1 - rate, else 0. `steps`
// [chains] name the random numbers. `blocks` counts the blocks of numbers that a chain's pass has used so far.
at::Tensor DropoutMask(double rate, const StepKey* steps, int64_t chains, int64_t values, const at::Tensor& like,
                       uint32_t* blocks);

}  // namespace chainfleet
