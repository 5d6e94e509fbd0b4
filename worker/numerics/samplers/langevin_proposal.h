// The Langevin proposal of Metropolis kernels, q(theta' | theta) = N(theta - alpha g(theta), 2 alpha T), for any
// function g.
#pragma once

#include <vector>

#include "worker/numerics/samplers/row_pass.h"

namespace chainfleet {

// What g is, of what a gradient arena holds: scale * (held + prior_precision / scale * theta).
struct LangevinDrift {
  double scale = 1, prior_precision = 0;
};

// `to` from `from` and the gradient there.
std::vector<PassOutcome> ProposeLangevin(const StepInputs& inputs, const LangevinDrift& drift, ThetaArena* to,
                                         ThetaArena* from, ThetaArena* gradient);

// cost[row] += T log(q(to | from) / q(from | to)), `gradient` at `from`, `gradient_to` at `to`.
void AddLangevinCost(const StepInputs& inputs, const LangevinDrift& drift, ThetaArena* to, ThetaArena* from,
                     ThetaArena* gradient, ThetaArena* gradient_to, std::vector<double>* cost);

}  // namespace chainfleet
