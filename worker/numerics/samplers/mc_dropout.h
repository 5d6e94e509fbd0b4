// MC dropout (Gal & Ghahramani, ICML 2016) on weights: W = M diag(z), where z_j = 0 with probability `rate`, else 1 /
// (1 - rate), for each input unit j of every linear and convolution layer except the first. A unit is a feature of a
// linear layer or a channel of a convolution. Each step draws one z (their Monte Carlo estimate with one sample of W
// for the minibatch):
//
//   v <- b v + m o grad U_batch(m o theta) + prior;  theta <- theta - alpha v          m: z spread over theta
//
// where the prior's gradient is taken at theta. After the training steps, a step draws m o theta: an ordinary network,
// whose logits are those of theta with the units of one z dropped. Dropout layers of the network itself are off; the
// sampler replaces them.
#pragma once

#include <vector>

#include "worker/numerics/samplers/sgd.h"

namespace chainfleet {

struct McDropout {
  Descent descent;
  double rate = 0;

  // draw: m o theta of the last step
  std::vector<std::string> Arenas() const { return descent.Arenas({"theta", "momentum", "draw"}); }
  std::string draw_arena() const { return "draw"; }
  void InitRow(SamplerState*, int64_t) const {}
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
