// The full-data gradient where a row is: an arena of the state, so that a step costs only the gradients of its
// proposal.
#pragma once

#include <vector>

#include "worker/numerics/samplers/metropolis.h"

namespace chainfleet {

// Whether the row's gradient is known: no before its first step.
inline constexpr int kGradientKnown = kFirstOwnNumber;

// Takes the gradient at theta of rows that have none into `gradient`; `spare` is overwritten. True for rows whose
// gradient is finite, and for rows at rest.
std::vector<bool> KnowGradient(const StepInputs& inputs, SamplerState* state, ThetaArena* gradient, ThetaArena* spare);

}  // namespace chainfleet
