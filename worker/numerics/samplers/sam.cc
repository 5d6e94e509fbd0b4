#include "worker/numerics/samplers/sam.h"

#include <cmath>

namespace chainfleet {

Late<StepInfo> Sam::Step(const StepInputs& inputs, SamplerState* state) const {
  StepScratch& scratch = *inputs.scratch;
  ThetaArena* theta = &state->theta();
  EvaluateBatches(inputs, *theta);
  const Late<double> energy = scratch.energy;
  const auto squares =
      RunPass(Pass::kDot, {&scratch.gradient, &scratch.gradient}, inputs.chains, [](int64_t, float*) {});
  const auto n = static_cast<double>(inputs.potential->num_examples());  // the gradient of U is N times the mean loss's
  ThetaArena* sharp = &scratch.Arena(0, *theta);
  RunPass(Pass::kPerturb, {sharp, theta, &scratch.gradient}, inputs.chains, [&](int64_t row, float* s) {
    const double radius = inputs.chains[row].own.rho.value_or(rho);
    s[0] = static_cast<float>(radius / (std::sqrt(squares[row].sum) + n * 1e-12));
  });
  for (int64_t row = 0; row < theta->rows(); ++row) {
    if (!inputs.chains[row].active) sharp->CopyRow(row, *theta);
  }
  EvaluateBatches(inputs, *sharp);
  scratch.energy = energy;
  return InfoOf(inputs, UpdateHeavyBall(inputs, momentum, theta, &state->arenas[1], &inputs.scratch->gradient));
}

}  // namespace chainfleet
