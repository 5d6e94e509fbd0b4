// The shared parts of the stochastic-gradient kernels: the mini-batch gradient, and the fused update on whichever
// device the rows are.
#pragma once

#include <vector>

#include "worker/numerics/samplers/row_pass.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The examples of each row's batch, and room for the gradient of `theta`'s rows, in the scratch.
BatchRows FillBatches(const StepInputs& inputs, const ThetaArena& theta);

// Gradient and energy at `theta`, each row on its own batch, into the scratch.
void EvaluateBatches(const StepInputs& inputs, const ThetaArena& theta);

// Optional terms of a Langevin update.
struct LangevinTerms {
  double eta = 0;             // of the coupling of theta_a, where there is one
  bool anchor_decay = false;  // theta_a feels the Gaussian prior
  double gradient_noise = 0;  // V: the injected variance is 2 alpha T - alpha^2 V, not below 0
};

// The update of kernels/update.h with the scratch's gradient; `theta_a` may be null. One StepInfo per row.
Late<StepInfo> UpdateLangevin(const StepInputs& inputs, const LangevinTerms& terms, ThetaArena* theta,
                              ThetaArena* theta_a);

// The StepInfo of each row of a step that made `outcomes` from the scratch's energies.
Late<StepInfo> InfoOf(const StepInputs& inputs, Late<PassOutcome> outcomes);

}  // namespace chainfleet
