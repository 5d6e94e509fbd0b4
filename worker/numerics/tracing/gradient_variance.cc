#include "worker/numerics/tracing/gradient_variance.h"

#include <algorithm>

#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {

int64_t NumVarianceBatches(int64_t num_parameters, Device device) {
  constexpr int64_t kMost = 64, kLeast = 8, kCoordinates = int64_t{1} << 22;
  return device.is_cuda() ? std::clamp(kCoordinates / num_parameters, kLeast, kMost) : kMost;
}

std::vector<double> MeasureGradientVariance(const StepInputs& inputs, ThetaArena* theta) {
  const int64_t rows = theta->rows(), n = inputs.batches->batch_size();
  std::vector<double> squares(rows);
  if (n == 0) return squares;
  StepScratch& scratch = *inputs.scratch;
  // Create the last arena first, because creating one may move the others.
  ThetaArena *sum = &scratch.Arena(1, *theta), *first = &scratch.Arena(0, *theta), *gradient = &scratch.gradient;
  std::vector<ChainStep> chains = inputs.chains;
  const StepInputs own = {inputs.potential, inputs.batches, inputs.plan, chains, &scratch};
  const auto add = [&](ThetaArena* to, ThetaArena* from, float weight, bool keep) {
    RunPass(Pass::kAccumulate, {to, from}, chains, [=](int64_t, float* s) { s[0] = weight, s[1] = keep ? 1 : 0; });
  };
  const int64_t batches = NumVarianceBatches(theta->layout().num_parameters(), theta->device());
  for (int64_t b = 0; b < batches; ++b) {
    for (ChainStep& chain : chains) chain.t = b * (inputs.potential->num_examples() / n);  // another data epoch
    EvaluateBatches(own, *theta);
    if (b == 0) {
      add(first, gradient, 1, false);
      continue;
    }
    // Sum differences from the first minibatch: near a start, squares of the gradients would hide the noise.
    add(gradient, first, -1, true);
    add(sum, gradient, 1, b > 1);
    const auto square = RunPass(Pass::kDot, {gradient, gradient}, chains, [](int64_t, float*) {});
    for (int64_t row = 0; row < rows; ++row) squares[row] += square[row].sum;
  }
  const auto of_sum = RunPass(Pass::kDot, {sum, sum}, chains, [](int64_t, float*) {});
  const auto count = static_cast<double>(batches);
  const auto dimension = static_cast<double>(theta->layout().num_parameters());
  for (int64_t row = 0; row < rows; ++row) {
    squares[row] = (squares[row] - of_sum[row].sum / count) / ((count - 1) * dimension);
  }
  return squares;
}

}  // namespace chainfleet
