#include "worker/numerics/samplers/stochastic_gradient.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "worker/numerics/kernels/cuda_module.h"

namespace chainfleet {

namespace {

std::vector<StepInfo> InfoOfUpdate(const std::vector<double>& energy, const std::vector<RowOutcome>& seen) {
  std::vector<StepInfo> info(energy.size());
  for (size_t row = 0; row < info.size(); ++row) {
    info[row].energy = energy[row];
    info[row].finite = std::isfinite(energy[row]) && seen[row].theta_check == 0;
    info[row].anchor_distance = std::sqrt(static_cast<double>(seen[row].anchor_distance2));
  }
  return info;
}

}  // namespace

BatchRows FillBatches(const StepInputs& inputs, const ThetaArena& theta) {
  StepScratch& scratch = *inputs.scratch;
  const int64_t n = inputs.batches->batch_size();
  MatchRows(theta, &scratch.gradient);
  scratch.keys.resize(theta.rows());
  for (int64_t row = 0; row < theta.rows(); ++row) {
    scratch.keys[row] = {inputs.chains[row].key, static_cast<uint64_t>(inputs.chains[row].t)};
  }
  BatchRows batch = {nullptr, n, scratch.keys.data(), PriorPrecisions(inputs)};
  if (theta.device().is_cuda()) {
    batch.draw = &inputs.batches->draw();
    return batch;
  }
  scratch.ids.resize(theta.rows() * n);
  for (int64_t row = 0; row < theta.rows(); ++row) {
    inputs.batches->Fill(inputs.chains[row].key, inputs.chains[row].t, scratch.ids.data() + row * n);
  }
  batch.ids = scratch.ids.data();
  return batch;
}

void EvaluateBatches(const StepInputs& inputs, const ThetaArena& theta) {
  const BatchRows batch = FillBatches(inputs, theta);
  inputs.scratch->energy = Evaluate(inputs, theta, batch, &inputs.scratch->gradient);
}

Late<PassOutcome> AddPrior(const StepInputs& inputs, ThetaArena* theta, ThetaArena* gradient) {
  return RunPass(Pass::kBlend, {gradient, theta}, inputs.chains, [&](int64_t row, float* s) {
    s[0] = 1;
    s[1] = static_cast<float>(PriorPrecision(inputs, row));
  });
}

Late<StepInfo> UpdateLangevin(const StepInputs& inputs, const LangevinTerms& terms, ThetaArena* theta,
                              ThetaArena* theta_a) {
  StepScratch& scratch = *inputs.scratch;
  const Layout& layout = theta->layout();
  UpdateBuffers buffers;
  buffers.spans = layout.spans().data();
  buffers.num_spans = static_cast<int64_t>(layout.spans().size());
  buffers.num_parameters = layout.num_parameters();
  buffers.row_stride = layout.row_stride();
  buffers.rows = theta->rows();
  buffers.theta = theta->data();
  buffers.theta_a = theta_a == nullptr ? nullptr : theta_a->data();
  buffers.gradient = scratch.gradient.data();

  scratch.steps.clear();
  for (int64_t row = 0; row < buffers.rows; ++row) {
    const ChainStep& chain = inputs.chains[row];
    const double precision = PriorPrecision(inputs, row), eta = chain.own.eta.value_or(terms.eta);
    RowStep step;
    step.key = chain.key;
    step.t = static_cast<uint64_t>(chain.t);
    step.step_size = static_cast<float>(chain.step_size);
    const double made = 2 * chain.step_size * chain.temperature;
    const double there = chain.step_size * chain.step_size * terms.gradient_noise;
    step.noise = static_cast<float>(std::sqrt(std::max(0.0, made - there)));
    step.prior_precision = static_cast<float>(precision);
    step.coupling = theta_a == nullptr ? 0 : static_cast<float>(1 / eta);
    step.anchor_precision = terms.anchor_decay ? static_cast<float>(precision) : 0;
    step.active = chain.active;
    scratch.steps.push_back(step);
  }
  Late<RowOutcome> seen;
  if (theta->device().is_cuda()) {
    seen = LangevinUpdateCuda(buffers, scratch.steps.data(), theta->device().cuda_index);
  } else {
    std::vector<RowOutcome> outcomes(buffers.rows);
    LangevinUpdateCpu(buffers, scratch.steps.data(), outcomes.data());
    seen = std::move(outcomes);
  }
  if (scratch.energy.is_there() && seen.is_there()) return InfoOfUpdate(scratch.energy.get(), seen.get());
  return Late<StepInfo>([energy = scratch.energy, seen] { return InfoOfUpdate(energy.get(), seen.get()); });
}

Late<StepInfo> InfoOf(const StepInputs& inputs, Late<PassOutcome> outcomes) {
  return Late<StepInfo>([energy = inputs.scratch->energy, outcomes = std::move(outcomes)] {
    std::vector<StepInfo> info(energy.get().size());
    for (size_t row = 0; row < info.size(); ++row) {
      info[row].energy = energy[row];
      info[row].finite = std::isfinite(energy[row]) && outcomes[row].check == 0;
    }
    return info;
  });
}

}  // namespace chainfleet
