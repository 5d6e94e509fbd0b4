// The full-data gradient at a row's state. It is an arena of the state, so that a step computes only the gradients of
// its proposal.
#pragma once

#include <vector>

#include "worker/numerics/samplers/metropolis.h"

namespace chainfleet {

// Index of the number that is 1 if the row's gradient is known and 0 before its first step.
inline constexpr int kGradientKnown = kFirstOwnNumber;

// Computes the gradient at theta into `gradient` for rows without one; overwrites `spare`. True for rows whose gradient
// is finite, and for inactive rows.
std::vector<bool> KnowGradient(const StepInputs& inputs, SamplerState* state, ThetaArena* gradient, ThetaArena* spare);

}  // namespace chainfleet
