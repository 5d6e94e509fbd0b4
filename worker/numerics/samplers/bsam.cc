#include "worker/numerics/samplers/bsam.h"

#include <algorithm>
#include <cmath>

namespace chainfleet {
namespace {

// Evaluates gradient and energy at `theta` on part `part` of each row's minibatch, into the scratch. Analytic
// potentials have one part without examples.
Late<double> EvaluatePart(const StepInputs& inputs, const ThetaArena& theta, int64_t part, int64_t parts) {
  StepScratch& scratch = *inputs.scratch;
  const int64_t n = inputs.batches->batch_size(), size = n / parts, rows = theta.rows();
  std::vector<int64_t> batch(n), ids(rows * size);
  std::vector<StepKey> keys(rows);
  for (int64_t row = 0; row < rows; ++row) {
    inputs.batches->Fill(inputs.chains[row].key, inputs.chains[row].t, batch.data());
    std::copy_n(batch.begin() + part * size, size, ids.begin() + row * size);
    keys[row] = {Fold(inputs.chains[row].key, static_cast<uint64_t>(part) + 1),
                 static_cast<uint64_t>(inputs.chains[row].t)};
  }
  MatchRows(theta, &scratch.gradient);
  return Evaluate(inputs, theta, {ids.data(), size, keys.data()}, &scratch.gradient);
}

}  // namespace

void Bsam::InitRow(SamplerState* state, int64_t row) const {
  const int64_t size = state->theta().layout().num_parameters();
  state->arenas[2].WriteRow(row, std::vector<float>(size, static_cast<float>(settings.initial_scale)));
}

Late<StepInfo> Bsam::Step(const StepInputs& inputs, SamplerState* state) const {
  StepScratch& scratch = *inputs.scratch;
  ThetaArena *theta = &state->theta(), *momentum = &state->arenas[1], *scale = &state->arenas[2];
  // Create all arenas first, because creating one may move the others.
  for (size_t i : {2, 1, 0}) scratch.Arena(i, *theta);
  ThetaArena *point = &scratch.arenas[0], *root = &scratch.arenas[1], *mean_gradient = &scratch.arenas[2];
  const auto n = static_cast<double>(inputs.potential->num_examples());
  const double method_n = settings.data_multiplier * n;
  const int64_t parts = settings.parts;
  std::vector<Late<double>> energies;
  for (int64_t part = 0; part < parts; ++part) {
    RunPass(
        Pass::kSampleScaled, {point, theta, scale}, inputs.chains,
        [&](int64_t, float* s) { s[0] = static_cast<float>(1 / std::sqrt(method_n)); }, RngStream::kThetaNoise,
        static_cast<uint64_t>(part) + 1);
    energies.push_back(EvaluatePart(inputs, *point, part, parts));
    RunPass(Pass::kSharpen, {point, theta, &scratch.gradient, scale, root}, inputs.chains, [&](int64_t row, float* s) {
      s[0] = static_cast<float>(inputs.chains[row].own.rho.value_or(settings.rho) / n);
      s[1] = static_cast<float>(1 / (static_cast<double>(parts) * n));
      s[2] = part == 0 ? 0.0f : 1.0f;
    });
    EvaluatePart(inputs, *point, part, parts);
    RunPass(Pass::kAccumulate, {mean_gradient, &scratch.gradient}, inputs.chains, [&](int64_t, float* s) {
      s[0] = static_cast<float>(1 / (static_cast<double>(parts) * n));
      s[1] = part == 0 ? 0.0f : 1.0f;
    });
  }
  scratch.energy = Late<double>([energies, rows = theta->rows()] {
    std::vector<double> mean(rows, 0);
    for (const Late<double>& energy : energies) {
      for (size_t row = 0; row < mean.size(); ++row) mean[row] += energy[row] / static_cast<double>(energies.size());
    }
    return mean;
  });
  return InfoOf(inputs, RunPass(Pass::kBsamStep, {theta, momentum, scale, mean_gradient, root}, inputs.chains,
                                [&](int64_t row, float* s) {
                                  const ChainStep& chain = inputs.chains[row];
                                  const double precision = chain.own.prior_precision.value_or(settings.prior_precision);
                                  s[0] = static_cast<float>(settings.beta1);
                                  s[1] = static_cast<float>(settings.beta2);
                                  s[2] = static_cast<float>(chain.step_size * n);
                                  s[3] = static_cast<float>(precision / method_n);
                                  s[4] = static_cast<float>(settings.damping);
                                }));
}

}  // namespace chainfleet
