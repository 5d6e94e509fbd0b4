#include "worker/numerics/samplers/sgd.h"

#include <cmath>

namespace chainfleet {

Late<PassOutcome> UpdateHeavyBall(const StepInputs& inputs, double momentum, ThetaArena* theta, ThetaArena* v,
                                  ThetaArena* gradient) {
  return RunPass(Pass::kHeavyBall, {theta, v, gradient}, inputs.chains, [&](int64_t row, float* s) {
    s[0] = static_cast<float>(momentum);
    s[1] = static_cast<float>(inputs.chains[row].step_size);
    s[2] = static_cast<float>(PriorPrecision(inputs, row));
  });
}

Late<PassOutcome> UpdateAdamw(const StepInputs& inputs, double beta1, ThetaArena* theta, AdamwMoments moments,
                              ThetaArena* gradient, bool decays) {
  constexpr double kBeta2 = 0.999, kEpsilon = 1e-8;
  const auto n = static_cast<double>(inputs.potential->num_examples());
  return RunPass(Pass::kAdamw, {theta, moments.m, moments.v, gradient}, inputs.chains, [&](int64_t row, float* s) {
    const ChainStep& chain = inputs.chains[row];
    const auto steps = static_cast<double>(chain.t + 1);
    // m and v hold gradients of U, N times those of the mean loss, without the correction of their start at 0.
    const double root = std::sqrt(1 - std::pow(kBeta2, steps));
    s[0] = static_cast<float>(beta1);
    s[1] = static_cast<float>(kBeta2);
    s[2] = static_cast<float>(n * chain.step_size * root / (1 - std::pow(beta1, steps)));
    s[3] = static_cast<float>(n * kEpsilon * root);
    s[4] = decays ? static_cast<float>(chain.step_size * PriorPrecision(inputs, row)) : 0.0f;
  });
}

std::vector<std::string> Descent::Arenas(std::vector<std::string> names) const {
  if (optimizer == Optimizer::kAdamw) names.push_back("square");
  return names;
}

Late<StepInfo> Descent::Update(const StepInputs& inputs, SamplerState* state) const {
  ThetaArena *theta = &state->theta(), *first = &state->arenas[1], *gradient = &inputs.scratch->gradient;
  if (optimizer == Optimizer::kHeavyBall) {
    return InfoOf(inputs, UpdateHeavyBall(inputs, momentum, theta, first, gradient));
  }
  if (couples_prior) AddPrior(inputs, theta, gradient);
  return InfoOf(inputs, UpdateAdamw(inputs, momentum, theta, {first, &state->arenas.back()}, gradient, !couples_prior));
}

}  // namespace chainfleet
