// Descent to a mode. With heavy-ball momentum b, as PyTorch's:
//
//   v <- b v + grad U_batch(theta);  theta <- theta - alpha v
//
// or AdamW (Loshchilov & Hutter, "Decoupled weight decay regularization", ICLR 2019) on the mean loss, g its gradient
// without a Gaussian prior of precision lambda, h = alpha N the learning rate, b2 = 0.999, t steps done:
//
//   m <- b m + (1 - b) g;  v <- b2 v + (1 - b2) g^2
//   theta <- theta - h (m / (1 - b^t)) / (sqrt(v / (1 - b2^t)) + 1e-8) - h (lambda / N) theta
//
// The decay is not divided by sqrt(v), so this AdamW does not end at argmin U. Where a law needs argmin U, the prior is
// coupled: g is the gradient with the prior, and nothing decays (Adam with an L2 penalty, Kingma & Ba, ICLR 2015).
//
// As a sampler it is a baseline: no noise, whatever the temperature. Independent chains are a deep ensemble
// (Lakshminarayanan et al., NeurIPS 2017).
#pragma once

#include <string>
#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

// The updates above.
Late<PassOutcome> UpdateHeavyBall(const StepInputs& inputs, double momentum, ThetaArena* theta, ThetaArena* v,
                                  ThetaArena* gradient);

struct AdamwMoments {
  ThetaArena *m, *v;
};
// `decays`: by the prior; false for a gradient that has it.
Late<PassOutcome> UpdateAdamw(const StepInputs& inputs, double beta1, ThetaArena* theta, AdamwMoments moments,
                              ThetaArena* gradient, bool decays = true);

// The descent of a kernel whose second arena is the momentum, and with AdamW the last one "square".
struct Descent {
  double momentum = 0;
  Optimizer optimizer = Optimizer::kHeavyBall;
  bool couples_prior = false;  // with AdamW; heavy ball always does

  std::vector<std::string> Arenas(std::vector<std::string> names) const;
  // Moves theta by the gradient of the scratch.
  Late<StepInfo> Update(const StepInputs& inputs, SamplerState* state) const;
};

struct Sgd {
  Descent descent;

  std::vector<std::string> Arenas() const { return descent.Arenas({"theta", "momentum"}); }
  void InitRow(SamplerState*, int64_t) const {}
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const {
    EvaluateBatches(inputs, state->theta());
    return descent.Update(inputs, state);
  }
};

}  // namespace chainfleet
