// Compares each likelihood's hand-written gradients with central differences and with autograd in double, and the fused
// network's potential with the eager one.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "tests/support/network_fixture.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

struct Case {
  std::string name;
  LikelihoodKind kind;
  int64_t classes = 0;  // 0: float32 targets
  TargetUnits units = {};
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"categorical", CategoricalLikelihood(), 3},
      {"bernoulli", BernoulliLikelihood(), 2},
      {"gaussian", GaussianLikelihood{.variance = 0.3}},
      {"learned gaussian", GaussianLikelihood{.variance = {}, .learned = true}},
      {"heteroscedastic", HeteroscedasticGaussianLikelihood()},
      {"softplus", HeteroscedasticGaussianLikelihood{DeviationLink::kSoftplus}},
      {"gaussian in units", GaussianLikelihood{.variance = 0.3}, 0, {4, 2.5}},
      {"learned in units", GaussianLikelihood{{}, true}, 0, {4, 2.5}},
      {"heteroscedastic in units", HeteroscedasticGaussianLikelihood(), 0, {4, 2.5}}};
  return cases;
}

constexpr int64_t kCount = 11;
constexpr double kLogVariance = -0.7;

// Outputs in lanes and targets, arbitrary.
struct Examples {
  explicit Examples(const Case& c) : likelihood(MakeLikelihood(c.kind, c.classes, c.units)) {
    for (int64_t i = 0; i < likelihood->num_outputs() * kLanes; ++i) {
      outputs[i] = static_cast<float>(1.5 * std::sin(static_cast<double>(3 * i + 1)));
    }
    for (int64_t l = 0; l < kCount; ++l) {
      targets[l] = c.classes > 0 ? static_cast<float>(l % c.classes) : static_cast<float>(std::cos(2.0 * l));
    }
  }
  LaneLosses Evaluate(float scale, float* delta, double log_variance = kLogVariance) const {
    LaneLosses losses;
    likelihood->Evaluate({outputs, targets, kCount, log_variance}, scale, delta, &losses);
    return losses;
  }

  const std::unique_ptr<const Likelihood> likelihood;
  alignas(64) float outputs[3 * kLanes];
  float targets[kLanes] = {};
};

TEST(LikelihoodParity, GradientsMatchCentralDifferences) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Examples examples(c);
    alignas(64) float delta[3 * kLanes], unused[3 * kLanes];
    const LaneLosses losses = examples.Evaluate(2, delta);
    constexpr float kStep = 1.0f / 256;
    for (int64_t i = 0; i < examples.likelihood->num_outputs() * kLanes; ++i) {
      if (i % kLanes >= kCount) {
        EXPECT_EQ(delta[i], 0) << "a missing example has no gradient";
        continue;
      }
      const float output = examples.outputs[i];
      examples.outputs[i] = output + kStep;
      const double above = examples.Evaluate(1, unused).loss[i % kLanes];
      examples.outputs[i] = output - kStep;
      const double below = examples.Evaluate(1, unused).loss[i % kLanes];
      examples.outputs[i] = output;
      EXPECT_NEAR(delta[i], 2 * (above - below) / (2 * kStep), 2e-4 * (1 + std::abs(delta[i])));
    }
    if (!examples.likelihood->has_log_variance()) continue;
    const LaneLosses above = examples.Evaluate(1, unused, kLogVariance + 1e-4);
    const LaneLosses below = examples.Evaluate(1, unused, kLogVariance - 1e-4);
    for (int64_t l = 0; l < kCount; ++l) {
      EXPECT_NEAR(losses.slope[l], (above.loss[l] - below.loss[l]) / 2e-4, 1e-6 * (1 + std::abs(losses.slope[l])));
    }
  }
}

TEST(LikelihoodParity, LossesAndGradientsMatchAutogradInDouble) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const Examples examples(c);
    const int64_t k = examples.likelihood->num_outputs();
    alignas(64) float delta[3 * kLanes];
    const LaneLosses losses = examples.Evaluate(1, delta);
    const at::Tensor outputs = at::from_blob(const_cast<float*>(examples.outputs), {k, kLanes}, at::kFloat)
                                   .to(at::kDouble)
                                   .t()
                                   .narrow(0, 0, kCount)
                                   .unsqueeze(0)
                                   .contiguous()
                                   .requires_grad_(true);
    at::Tensor targets = at::from_blob(const_cast<float*>(examples.targets), {1, kCount}, at::kFloat);
    targets = targets.to(c.classes > 0 ? at::kLong : at::kDouble);
    const at::Tensor log_variance = at::tensor({kLogVariance}, at::kDouble).view({1, 1}).requires_grad_(true);
    const at::Tensor expected = examples.likelihood->Losses(outputs, targets, log_variance);
    expected.sum().backward();
    for (int64_t l = 0; l < kCount; ++l) {
      const double loss = expected[0][l].item<double>();
      EXPECT_NEAR(losses.loss[l], loss, 1e-6 * (1 + std::abs(loss)));
      for (int64_t o = 0; o < k; ++o) {
        const double gradient = outputs.grad()[0][l][o].item<double>();
        EXPECT_NEAR(delta[o * kLanes + l], gradient, 1e-6 * (1 + std::abs(gradient)));
      }
    }
    if (!examples.likelihood->has_log_variance()) continue;
    double sum = 0;
    for (int64_t l = 0; l < kCount; ++l) sum += losses.slope[l];
    EXPECT_NEAR(sum, log_variance.grad().item<double>(), 1e-9 * std::abs(sum));
  }
}

// Compares the density of a target as stored with the loss of the same target standardised.
TEST(LikelihoodParity, LossesAreTheLogDensitiesOfTheMomentsInTheTargetsOwnUnits) {
  for (const Case& c : Cases()) {
    if (c.classes > 0) continue;
    SCOPED_TRACE(c.name);
    const Examples examples(c);
    alignas(64) float unused[3 * kLanes];
    const LaneLosses losses = examples.Evaluate(1, unused);
    double mean[kLanes], variance[kLanes];
    examples.likelihood->Moments(examples.outputs, kLogVariance, mean, variance);
    for (int64_t l = 0; l < kCount; ++l) {
      const double gap = c.units.mean + c.units.stddev * examples.targets[l] - mean[l];
      const double expected = (gap * gap / variance[l] + std::log(2 * std::numbers::pi * variance[l])) / 2;
      EXPECT_NEAR(losses.loss[l], expected, 1e-9 * (1 + std::abs(expected)));
      EXPECT_NEAR(mean[l], c.units.mean + c.units.stddev * examples.outputs[l], 1e-12 * (1 + std::abs(mean[l])));
    }
    const auto* given = std::get_if<GaussianLikelihood>(&c.kind);
    if (given != nullptr && given->variance) {
      EXPECT_NEAR(variance[0], 0.3, 1e-12) << "of the targets as stored";
    }
  }
}

TEST(LikelihoodParity, FusedPotentialAgreesWithTheEagerOne) {
  at::set_num_threads(1);
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const auto data = Resident(MakeTable(70, 4, /*labels=*/c.classes > 0));
    JobPlan plan;
    plan.spec.model = {BuiltinModel{"mlp", {7}}, c.kind};
    plan.spec.prior.kind = GaussianPrior{3};
    plan.normalisation = data->description().normalisation;
    plan.target_units = c.units;
    const auto fused = MakeNetworkPotential(plan, data, Device());
    ASSERT_TRUE(fused.ok()) << fused.status();
    const auto eager =
        MakeEagerPotential(*InferNetwork(plan.spec.model, {4}, c.classes > 0 ? 2 : 0), (*fused)->layout(), data,
                           {plan.normalisation, {}, 3, c.kind, c.units}, Device(), ChainBatching::kTogether);
    const ThetaArena theta = RandomTheta((*fused)->layout(), 3);
    ThetaArena fused_gradient = theta.Clone(), eager_gradient = theta.Clone();
    const std::vector<int64_t> ids = SomeIds(3, 37, 70);
    const BatchRows batch{ids.data(), 37};
    std::vector<double> fused_energy(3), eager_energy(3), fused_losses(111), eager_losses(111);
    (*fused)->Evaluate(theta, batch, &fused_gradient, fused_energy.data());
    eager->Evaluate(theta, batch, &eager_gradient, eager_energy.data());
    (*fused)->Losses(theta, batch, fused_losses.data());
    eager->Losses(theta, batch, eager_losses.data());
    for (int r = 0; r < 3; ++r) EXPECT_NEAR(fused_energy[r], eager_energy[r], 1e-5 * std::abs(eager_energy[r]));
    for (int i = 0; i < 111; ++i) EXPECT_NEAR(fused_losses[i], eager_losses[i], 1e-5 * (1 + eager_losses[i]));
    const at::Tensor difference = (RowsView(fused_gradient) - RowsView(eager_gradient)).abs().max();
    EXPECT_LT(difference.item<float>(), 1e-5f * RowsView(eager_gradient).abs().max().item<float>());
  }
}

// X_i|^2 with its log-variance part, from a batch of one for each example.
TEST(LikelihoodParity, SquaredNormsCountTheLogVariance) {
  at::set_num_threads(1);
  const auto data = Resident(MakeTable(20, 4, false));
  JobPlan plan;
  plan.spec.model = {BuiltinModel{"mlp", {7}}, GaussianLikelihood{.variance = {}, .learned = true}};
  plan.normalisation = data->description().normalisation;
  std::vector<std::unique_ptr<Potential>> potentials;
  auto fused = MakeNetworkPotential(plan, data, Device());
  ASSERT_TRUE(fused.ok()) << fused.status();
  potentials.push_back(*std::move(fused));
  const auto layout = potentials[0]->layout();
  for (const ChainBatching batching : {ChainBatching::kApart, ChainBatching::kTogether}) {
    potentials.push_back(MakeEagerPotential(*InferNetwork(plan.spec.model, {4}, 0), layout, data,
                                            {plan.normalisation, {}, 0, *plan.spec.model.likelihood}, Device(),
                                            batching));
  }
  const ThetaArena theta = RandomTheta(layout, 2);
  ThetaArena gradient = theta.Clone();
  const std::vector<int64_t> ids = SomeIds(2, 20, 20);
  for (size_t p = 0; p < potentials.size(); ++p) {
    SCOPED_TRACE(p);
    double energy[2], norms[40];
    ASSERT_TRUE(potentials[p]->EvaluateWithNorms(theta, {ids.data(), 20}, &gradient, energy, norms));
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t one[] = {ids[i], ids[20 + i]};
      potentials[p]->Evaluate(theta, {one, 1}, &gradient, energy);
      for (int64_t row = 0; row < 2; ++row) {
        const at::Tensor of_row = RowsView(gradient)[row].to(at::kDouble);
        const double expected = of_row.square().sum().item<double>() / (20 * 20);
        EXPECT_NEAR(norms[row * 20 + i], expected, 1e-5 * expected);
      }
    }
  }
}

}  // namespace
}  // namespace chainfleet
