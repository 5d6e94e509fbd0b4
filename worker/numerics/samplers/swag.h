// SWA (Izmailov et al., UAI 2018) and SWAG (Maddox et al., NeurIPS 2019): descent, with a snapshot of theta at
// the end of each data epoch from `start_epoch` on (every step for an analytic potential); then one network a step from
// the Gaussian of the snapshots:
//
//   mean, spread   running mean and variance of theta: spread = mean of squares - square of mean, without the loss
//   D              the last K columns theta - mean, each with the mean that includes its snapshot
//   draw = mean + sqrt(scale) (sqrt(max(spread, 1e-30)) z1 + D^T z2 / sqrt(K - 1))
//
// A file of draws gives snapshots, too, before the first step.
//
// z2 is one K-vector for all tensors, so that layers stay correlated. K = 0 means no D (SWAG-diag); scale = 0 gives the
// mean (SWA).
#pragma once

#include <string>
#include <vector>

#include "worker/numerics/samplers/sgd.h"

namespace chainfleet {

struct Swag {
  Descent descent;
  int64_t start_epoch = 0;
  int64_t max_rank = 0;  // K
  double scale = 0;

  // theta, momentum, draw, mean and spread in two floats each, deviation0 to deviation(K-1), the descent's own;
  // numbers: {snapshots taken}.
  std::vector<std::string> Arenas() const;
  std::string draw_arena() const { return "draw"; }
  void InitRow(SamplerState* state, int64_t row) const { state->numbers[row] = {0}; }
  // Takes row `row` of theta as a snapshot.
  void TakeSnapshot(int64_t row, SamplerState* state) const;
  Late<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;

 private:
  void Average(const std::vector<ChainStep>& due, SamplerState* state) const;
  void TakeSnapshots(const StepInputs& inputs, SamplerState* state) const;
  void Sample(const StepInputs& inputs, const std::vector<ChainStep>& sampling, SamplerState* state) const;
};

}  // namespace chainfleet
