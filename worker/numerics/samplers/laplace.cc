#include "worker/numerics/samplers/laplace.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/kernels/square_sum.h"
#include "worker/numerics/samplers/anchored_langevin.h"
#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/laplace_gaussian.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {
namespace {

enum : size_t { kTheta, kMomentum, kDraw };

// A row's approximation, derived from the end of its training.
struct Approximation {
  Curvature curvature;
  int64_t batches = 0;  // minibatches of the pass that `curvature` includes; the Gaussian then replaces `curvature`
  std::optional<LaplaceGaussian> gaussian;
  std::optional<double> log_evidence;
};

Approximation& Of(const std::shared_ptr<void>& derived) { return *static_cast<Approximation*>(derived.get()); }

// log of the Gaussian prior's density at theta [D] without D/2 log(1 / 2 pi), which the Gaussian's integral cancels.
double LogPriorOver2Pi(const std::vector<float>& theta, const std::vector<double>& lambda, const Layout& layout) {
  double log_prior = 0;
  for (size_t k = 0; k < lambda.size(); ++k) {
    const TensorSpan& span = layout.spans()[k];
    const double squares = SquareSum(&theta[span.first], span.size);
    log_prior += (static_cast<double>(span.size) * std::log(lambda[k]) - lambda[k] * squares) / 2;
  }
  return log_prior;
}

// On the host only one thread computes a row, so its bits do not depend on the number of threads.
void ForEachActive(const std::vector<ChainStep>& chains, Device device, const std::function<void(int64_t)>& of_row) {
  const auto if_active = [&](int64_t row) {
    if (chains[row].active) of_row(row);
  };
  const auto rows = static_cast<int64_t>(chains.size());
  if (!device.is_cuda()) return RunSingleThreaded(rows, if_active);
  for (int64_t row = 0; row < rows; ++row) if_active(row);
}

}  // namespace

Late<StepInfo> Laplace::Step(const StepInputs& inputs, SamplerState* state) const {
  const StepPlan& plan = *inputs.plan;
  const auto training =
      OnlyActive(inputs.chains, [&](const ChainStep& chain) { return chain.t < plan.training_steps; });
  const auto trained =
      OnlyActive(inputs.chains, [&](const ChainStep& chain) { return chain.t >= plan.training_steps; });
  std::vector<StepInfo> of_trained(inputs.chains.size());
  // Do this before other rows move, because it may run out of memory.
  if (Any(trained)) {
    TakeCurvature(inputs, trained, state);
    const auto sampling =
        OnlyActive(trained, [&](const ChainStep& chain) { return chain.t >= plan.training_steps + plan.pass_steps; });
    Factor(inputs, sampling, state);
    Sample(inputs, sampling, state, &of_trained);
    const StepInputs some = ForChains(inputs, trained);
    EvaluateBatches(some, state->arenas[kDraw]);
    for (size_t row = 0; row < of_trained.size(); ++row) {
      of_trained[row].energy = inputs.scratch->energy[row];
      of_trained[row].finite = of_trained[row].finite && std::isfinite(of_trained[row].energy);
    }
  }
  if (!Any(training)) return of_trained;
  const StepInputs some = ForChains(inputs, training);
  EvaluateBatches(some, state->theta());
  const Late<StepInfo> moved = descent.Update(some, state);
  if (!Any(trained)) return moved;
  std::vector<StepInfo> info = moved;
  for (size_t row = 0; row < info.size(); ++row) {
    if (trained[row].active) info[row] = of_trained[row];
  }
  return info;
}

void Laplace::TakeCurvature(const StepInputs& inputs, const std::vector<ChainStep>& trained,
                            SamplerState* state) const {
  const StepPlan& plan = *inputs.plan;
  const int64_t all = inputs.potential->num_examples(), n = std::max<int64_t>(1, inputs.batches->batch_size());
  // Take the sums out of the state while they grow: a sum that an error leaves incomplete must not be used later.
  std::vector<std::shared_ptr<void>> derived = std::exchange(state->derived, {});
  state->derived.resize(derived.size());
  for (bool behind = true; behind;) {
    behind = false;
    std::vector<CurvatureSlice> slices(trained.size());
    for (size_t row = 0; row < trained.size(); ++row) {
      if (!trained[row].active) continue;
      if (derived[row] == nullptr) {
        auto fresh = std::make_shared<Approximation>();
        fresh->curvature.structure = structure;
        derived[row] = std::move(fresh);
        state->arenas[kDraw].CopyRow(static_cast<int64_t>(row), state->theta());  // until there is a draw
      }
      Approximation& of_row = Of(derived[row]);
      if (of_row.batches >= std::min(trained[row].t - plan.training_steps + 1, plan.pass_steps)) continue;
      const int64_t first = of_row.batches++ * n;
      slices[row] = {&of_row.curvature, first, std::min(n, all - first)};
      behind = true;
    }
    if (!behind) break;
    const bool known = inputs.potential->AddCurvature(state->theta(), slices.data());
    CHAINFLEET_CHECK(known) << "a potential without this curvature was given to laplace";
  }
  state->derived = std::move(derived);
}

void Laplace::Factor(const StepInputs& inputs, const std::vector<ChainStep>& sampling, SamplerState* state) const {
  std::vector<ChainStep> due = sampling;
  for (size_t row = 0; row < due.size(); ++row) {
    due[row].active = due[row].active && !Of(state->derived[row]).gaussian;
  }
  if (!Any(due)) return;
  const ThetaArena& theta = state->theta();
  const std::vector<double> losses = LossOverAllData(inputs, theta);
  const bool has_prior = inputs.batches->batch_size() > 0;
  ForEachActive(due, theta.device(), [&](int64_t row) {
    Approximation& of_row = Of(state->derived[row]);
    std::vector<double> lambda = inputs.potential->PriorPrecisions();
    if (const auto& own = due[row].own.prior_precision) lambda.assign(lambda.size(), *own);
    of_row.gaussian = LaplaceGaussian::Factor(of_row.curvature, lambda, theta.layout(), RowsView(theta).device());
    of_row.curvature = {};
    if (!of_row.gaussian) return;
    double evidence = -losses[row] - of_row.gaussian->LogDeterminant() / 2;
    if (has_prior) {
      evidence += LogPriorOver2Pi(theta.ReadRow(row), lambda, theta.layout());
    } else {
      evidence += static_cast<double>(theta.layout().num_parameters()) / 2 * std::log(2 * M_PI);
    }
    if (std::isfinite(evidence)) of_row.log_evidence = evidence;
  });
}

void Laplace::Sample(const StepInputs& inputs, const std::vector<ChainStep>& sampling, SamplerState* state,
                     std::vector<StepInfo>* info) const {
  if (!Any(sampling)) return;
  ThetaArena& draw = state->arenas[kDraw];
  ThetaArena& zero = inputs.scratch->Arena(0, draw);
  RowsView(zero).zero_();
  RunPass(
      Pass::kNormalAround, {&draw, &zero}, sampling, [](int64_t, float* s) { s[0] = 1; }, RngStream::kProposal);
  ForEachActive(sampling, draw.device(), [&](int64_t row) {
    const Approximation& of_row = Of(state->derived[row]);
    (*info)[row].finite = of_row.gaussian.has_value();
    (*info)[row].log_evidence = of_row.log_evidence;
    if (!of_row.gaussian) return;
    std::vector<at::Tensor> tensors, center;
    for (size_t k = 0; k < draw.layout().spans().size(); ++k) {
      tensors.push_back(ParameterView(draw, static_cast<int64_t>(k)).select(0, row));
      center.push_back(ParameterView(state->theta(), static_cast<int64_t>(k)).select(0, row));
    }
    of_row.gaussian->Shape(tensors);
    const double scale = std::sqrt(sampling[row].temperature);
    for (size_t k = 0; k < tensors.size(); ++k) tensors[k].mul_(scale).add_(center[k]);
  });
}

}  // namespace chainfleet
