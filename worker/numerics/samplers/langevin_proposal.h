// The Langevin proposal of Metropolis kernels, q(theta' | theta) = N(theta - alpha g(theta), 2 alpha T), for any
// function g.
#pragma once

#include <vector>

#include "worker/numerics/samplers/row_pass.h"

namespace chainfleet {

// `to` from `from` and the gradient there. What g is, of what a gradient arena holds:
// likelihood_weight * (held + prior precision / likelihood_weight * theta).
Late<PassOutcome> ProposeLangevin(const StepInputs& inputs, double likelihood_weight, ThetaArena* to, ThetaArena* from,
                                  ThetaArena* gradient);

// cost[row] += T log(q(to | from) / q(from | to)), `gradient` at `from`, `gradient_to` at `to`.
void AddLangevinCost(const StepInputs& inputs, double likelihood_weight, ThetaArena* to, ThetaArena* from,
                     ThetaArena* gradient, ThetaArena* gradient_to, std::vector<double>* cost);

}  // namespace chainfleet
