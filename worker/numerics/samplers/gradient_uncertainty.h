// Sampling with gradient uncertainty (Park et al., "Sampling-based Bayesian inference with gradient uncertainty"). With
// X_i the gradient of example i's -log likelihood, over a minibatch
//
//   GU = sum over i != j of <X_i, X_j> = |sum X_i|^2 - sum |X_i|^2,   scale-free: GU / sum |X_i|^2, 0 if all X_i are 0
//
// If GU is below the threshold, theta is kept as a draw and the step has noise N(0, 2 alpha T); else the step is plain
// SGD. Without a given threshold, it is the `quantile` of the values seen in burn-in, which is noise-free.
#pragma once

#include <optional>
#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

struct GradientUncertainty {
  static constexpr const char* kArenas[] = {"theta", "kept"};
  GradientUncertaintySpec settings;

  // Numbers: {1, threshold}, or in burn-in {0, values seen so far...}, at most kMaxValues of them, evenly spaced.
  static constexpr int64_t kMaxValues = 4096;
  std::string draw_arena() const { return "kept"; }
  void InitRow(SamplerState* state, int64_t row) const {
    state->numbers[row] = settings.threshold ? std::vector<double>{1, *settings.threshold} : std::vector<double>{0};
  }
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;

 private:
  // Records `value` in burn-in. True if the row's state must be kept as a draw.
  bool Decide(const StepPlan& plan, int64_t t, double value, std::vector<double>* numbers) const;
};

}  // namespace chainfleet
