// The Langevin proposal of Metropolis kernels, q(theta' | theta) = N(theta - alpha g(theta), 2 alpha T), for any
// function g.
#pragma once

#include <vector>

#include "worker/numerics/samplers/row_pass.h"

namespace chainfleet {

// Writes the proposal `to`, given `from` and its gradient arena. g is computed from the arena as likelihood_weight *
// (arena + prior precision / likelihood_weight * theta).
Late<PassOutcome> ProposeLangevin(const StepInputs& inputs, double likelihood_weight, ThetaArena* to, ThetaArena* from,
                                  ThetaArena* gradient);

// cost[row] += T log(q(to | from) / q(from | to)). `gradient` is at `from`, `gradient_to` at `to`.
void AddLangevinCost(const StepInputs& inputs, double likelihood_weight, ThetaArena* to, ThetaArena* from,
                     ThetaArena* gradient, ThetaArena* gradient_to, std::vector<double>* cost);

}  // namespace chainfleet
