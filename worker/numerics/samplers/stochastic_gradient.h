// The shared parts of the stochastic-gradient kernels: the minibatch gradient, and the fused update on the rows'
// device.
#pragma once

#include <vector>

#include "worker/numerics/samplers/row_pass.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// Fills the scratch with the examples of each row's minibatch, and makes room for the gradient of `theta`'s rows.
BatchRows FillBatches(const StepInputs& inputs, const ThetaArena& theta);

// Evaluates gradient and energy at `theta`, each row on its own minibatch, into the scratch.
void EvaluateBatches(const StepInputs& inputs, const ThetaArena& theta);

// Adds the prior's gradient at theta. Sum: the square of the length of the whole gradient.
Late<PassOutcome> AddPrior(const StepInputs& inputs, ThetaArena* theta, ThetaArena* gradient);

// Optional terms of a Langevin update.
struct LangevinTerms {
  double eta = 0;             // coupling with theta_a, if any
  bool anchor_decay = false;  // the Gaussian prior also acts on theta_a
  double gradient_noise = 0;  // V: the injected variance is 2 alpha T - alpha^2 V, at least 0
};

// The update of kernels/update.h with the scratch's gradient; `theta_a` may be null. One StepInfo per row.
Late<StepInfo> UpdateLangevin(const StepInputs& inputs, const LangevinTerms& terms, ThetaArena* theta,
                              ThetaArena* theta_a);

// The StepInfo of each row, from `outcomes` and the scratch's energies.
Late<StepInfo> InfoOf(const StepInputs& inputs, Late<PassOutcome> outcomes);

}  // namespace chainfleet
