// Compares mobility, heat and stability bounds with the kernels themselves on a quadratic.
#include "worker/numerics/tracing/linear_response.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/kernel_rows.h"
#include "tests/support/linear_law.h"

namespace chainfleet {
namespace {

using testing::KernelRows;
using testing::LinearStep;

constexpr double kCurvature = 2.5, kPrior = 1.5;

// U = k x^2 / 2, kPrior of k being the prior's, from one example whose gradient has a norm.
class Quadratic final : public Potential {
 public:
  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return 1; }
  double prior_precision() const override { return kPrior; }
  void Evaluate(const ThetaArena& theta, const BatchRows&, ThetaArena* gradient, double* energy) override {
    for (int64_t row = 0; row < theta.rows(); ++row) {
      gradient->row(row)[0] = static_cast<float>((kCurvature - kPrior) * theta.row(row)[0]);
      energy[row] = 0;
    }
  }
  bool EvaluateWithNorms(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy,
                         double* squared_norms) override {
    Evaluate(theta, batch, gradient, energy);
    for (int64_t row = 0; row < theta.rows(); ++row) squared_norms[row] = std::pow(gradient->row(row)[0], 2);
    return true;
  }
  void Losses(const ThetaArena&, const BatchRows&, double*) override {}
  void LogPrior(const ThetaArena&, const double*, double*) override {}

 private:
  const std::shared_ptr<const Layout> layout_ = testing::OneParameter();
};

// Returns the distance from the mode after `steps` training steps from 1 without noise.
double Distance(const SamplerSpec& sampler, double step_size, int steps) {
  Quadratic potential;
  const bool has_examples = std::holds_alternative<GradientUncertaintySpec>(sampler.kind);
  KernelRows rows(*MakeKernel(sampler), &potential, has_examples ? 1 : 0, 1, 1, step_size, /*temperature=*/0,
                  {.training_steps = steps + 1});
  rows.Set([](int64_t) { return 1.0; });
  for (int i = 0; i < steps; ++i) rows.Step();
  return std::abs(rows.theta(0));
}

struct Case {
  std::string name;
  SamplerSpec sampler;
};

class StableBelowTest : public ::testing::TestWithParam<Case> {};

TEST_P(StableBelowTest, IsWhereTheKernelOnAQuadraticBeginsToDiverge) {
  const auto bound = StableBelow(GetParam().sampler, kCurvature, kPrior);
  ASSERT_TRUE(bound.has_value());
  EXPECT_LT(Distance(GetParam().sampler, 0.99 * *bound, 3000), 1e-3);
  EXPECT_FALSE(Distance(GetParam().sampler, 1.01 * *bound, 3000) < 1e3);
}

INSTANTIATE_TEST_SUITE_P(Samplers, StableBelowTest,
                         ::testing::Values(Case{"sgld", {SgldSpec{}}}, Case{"emcmc", {EmcmcSpec{.eta = 0.7}}},
                                           Case{"emcmc_stiff", {EmcmcSpec{.eta = 0.01}}},
                                           Case{"emcmc_decay", {EmcmcSpec{.eta = 0.7, .anchor_decay = true}}},
                                           Case{"gibbs1", {EmcmcGibbsSpec{.eta = 0.7, .inner_steps = 1}}},
                                           Case{"gibbs2", {EmcmcGibbsSpec{.eta = 0.7, .inner_steps = 2}}},
                                           Case{"gibbs3", {EmcmcGibbsSpec{.eta = 0.7, .inner_steps = 3}}},
                                           Case{"entropy_sgd", {EntropySgdSpec{.eta = 0.05}}},
                                           Case{"entropy_sgd1", {EntropySgdSpec{.eta = 0.7, .inner_steps = 1}}},
                                           Case{"entropy_sgd5", {EntropySgdSpec{.eta = 0.7, .inner_steps = 5}}},
                                           Case{"friction", {SghmcSpec{.friction = 0.3}}},
                                           Case{"baoa", {SghmcSpec{.friction = 0.3, .scheme = SghmcScheme::kBaoa}}},
                                           Case{"sgd", {SgdSpec{.momentum = 0.6}}},
                                           // A climb so short that circling it is near the minimum.
                                           Case{"sam", {SamSpec{.rho = 1e-6, .momentum = 0.6}}},
                                           Case{"swa", {SwaSpec{.momentum = 0.6}}},
                                           Case{"swag", {SwagSpec{.momentum = 0.6}}},
                                           Case{"mc_dropout", {McDropoutSpec{.momentum = 0.6}}},
                                           Case{"laplace", {LaplaceSpec{.momentum = 0.6}}},
                                           Case{"gradient_uncertainty", {GradientUncertaintySpec{.threshold = 0}}}),
                         [](const auto& info) { return info.param.name; });

// Its noise on theta stays at T = 0: the same bound by the same recursion.
TEST(StableBelow, EntropySgldHasTheBoundOfEntropySgd) {
  EXPECT_EQ(StableBelow({EntropySgldSpec{0.7, 5}}, 3, 0), StableBelow({EntropySgdSpec{0.7, 5}}, 3, 0));
  EXPECT_DOUBLE_EQ(*StableBelow({EntropySgdSpec{0.2, 20}}, 3, 0), 2.0 / 8);  // that of the inner chain
}

TEST(StableBelow, MatchesThePublishedFormulas) {
  const double k = 3, g = 5;
  EXPECT_DOUBLE_EQ(*StableBelow({SgldSpec{}}, k, 0), 2 / k);
  EXPECT_DOUBLE_EQ(*StableBelow({EmcmcSpec{.eta = 1 / g}}, k, 0), 4 / (k + 2 * g + std::sqrt(k * k + 4 * g * g)));
  EXPECT_DOUBLE_EQ(*StableBelow({SghmcSpec{.friction = 0.1}}, k, 0), 2 * (2 - 0.1) / k);
  EXPECT_DOUBLE_EQ(*StableBelow({SghmcSpec{.scheme = SghmcScheme::kBaoa}}, k, 0), 4 / k);
  EXPECT_DOUBLE_EQ(*StableBelow({HmcSpec{}}, k, 0), 2 / std::sqrt(k));
}

TEST(StableBelow, CountsThePriorOfTheAnchor) {
  // The eigenvalues of [[k + g, -g], [-g, g + l]] with k = 3, g = 5, l = 3 are 3 and 13.
  EXPECT_DOUBLE_EQ(*StableBelow({EmcmcSpec{.eta = 0.2, .anchor_decay = true}}, 3, 3), 2.0 / 13);
}

TEST(StableBelow, IsAbsentWhereNoStepIsTooLarge) {
  EXPECT_FALSE(StableBelow({SgldSpec{}}, -1, 0).has_value());
  EXPECT_DOUBLE_EQ(*StableBelow({EmcmcSpec{.eta = 0.2}}, -1, 0), 1 / 5.0);  // the coupling's own
  EXPECT_FALSE(HasStabilityBound({RandomWalkSpec{}}));
  EXPECT_FALSE(HasStabilityBound({BsamSpec{}}));
}

// The stationary variance of theta on a quadratic under gradient noise of variance V, by iterating the second moments
// of (theta, v).
double VarianceOf(const SghmcSpec& sampler, double alpha, double k, double temperature, double v) {
  const double a = sampler.friction, c = 1 - a, e = std::sqrt(alpha);
  const bool friction = sampler.scheme == SghmcScheme::kFriction;
  // theta' = p theta + q v + noise[0], v' = r theta + s v + noise[1].
  const double r = friction ? -alpha * k : -c * e * k, s = c;
  const double p = friction ? 1 + r : 1 - alpha * k / 2 * (1 + c), q = friction ? c : e / 2 * (1 + c);
  const double from_gradient[2] = {friction ? alpha : alpha / 2 * (1 + c), friction ? alpha : c * e};
  const double from_heat[2] = {friction ? 1 : e / 2, 1};
  const double heat = friction ? 2 * a * alpha * temperature : temperature * (1 - c * c);
  double xx = 0, xv = 0, vv = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    const double nxx = p * p * xx + 2 * p * q * xv + q * q * vv + from_gradient[0] * from_gradient[0] * v +
                       from_heat[0] * from_heat[0] * heat;
    const double nxv = p * r * xx + (p * s + q * r) * xv + q * s * vv + from_gradient[0] * from_gradient[1] * v +
                       from_heat[0] * from_heat[1] * heat;
    vv = r * r * xx + 2 * r * s * xv + s * s * vv + from_gradient[1] * from_gradient[1] * v +
         from_heat[1] * from_heat[1] * heat;
    xx = nxx;
    xv = nxv;
  }
  return xx;
}

TEST(Mobility, GivesTheTemperatureThatGradientNoiseMakes) {
  const double k = 1, temperature = 0.5, alpha = 1e-4;
  for (const double friction : {0.05, 0.3, 1.0}) {
    for (const SghmcScheme scheme : {SghmcScheme::kFriction, SghmcScheme::kBaoa}) {
      const SghmcSpec sampler{.friction = friction, .scheme = scheme};
      EXPECT_DOUBLE_EQ(*HeatOfNoise({sampler}, alpha), *Mobility({sampler}, alpha) / 2);
      const double v = 1 / *HeatOfNoise({sampler}, alpha);  // the noise adds 1
      EXPECT_NEAR(VarianceOf(sampler, alpha, k, temperature, v) * k, temperature + 1, 3e-3)
          << friction << (scheme == SghmcScheme::kBaoa ? " baoa" : " friction");
    }
  }
  EXPECT_DOUBLE_EQ(*Mobility({SgldSpec{}}, alpha), alpha);
  EXPECT_DOUBLE_EQ(*Mobility({EmcmcSpec{}}, alpha), alpha);
  EXPECT_DOUBLE_EQ(*HeatOfNoise({SgldSpec{}}, alpha), alpha / 2);
  EXPECT_FALSE(Mobility({SgdSpec{}}, alpha).has_value());
  EXPECT_FALSE(HeatOfNoise({SgdSpec{}}, alpha).has_value());
}

// The temperature of theta on U = k x^2 / 2 under gradient noise of variance `v`: k times the variance after 2^40 steps
// of the recursion of (theta, theta_a) that tests/statistical holds the kernels to.
double TemperatureOf(const SamplerSpec& sampler, double alpha, double k, double temperature, double v) {
  const double noise = 2 * alpha * temperature, of_theta = noise + alpha * alpha * v;
  LinearStep step;
  if (const auto* emcmc = std::get_if<EmcmcSpec>(&sampler.kind)) {
    const double g = 1 / emcmc->eta;
    step = {{{1 - alpha * (k + g), alpha * g}, {alpha * g, 1 - alpha * g}}, {{of_theta, 0}, {0, noise}}};
  } else {
    const auto& gibbs = std::get<EmcmcGibbsSpec>(sampler.kind);
    const double g = 1 / gibbs.eta;
    step = {{{1, 0}, {1, 0}}, {{0, 0}, {0, temperature * gibbs.eta}}};
    const LinearStep inner = {{{1 - alpha * (k + g), alpha * g}, {0, 1}}, {{of_theta, 0}, {0, 0}}};
    for (int64_t i = 0; i < gibbs.inner_steps; ++i) step = testing::Then(step, inner);
  }
  for (int i = 0; i < 40; ++i) step = testing::Then(step, step);
  return step.q[0][0] * k;
}

// The heat alone, without the error of the step: the difference to the same chain without gradient noise.
double ExactHeat(const SamplerSpec& sampler, double alpha, double k) {
  return TemperatureOf(sampler, alpha, k, 0.5, 1000) / 1000 - TemperatureOf(sampler, alpha, k, 0.5, 0) / 1000;
}

TEST(HeatOfNoise, IsSharedByThetaAndItsAnchor) {
  constexpr double kAlpha = 1e-3, kG = 200;
  std::vector<SamplerSpec> samplers = {{EmcmcSpec{.eta = 1 / kG}}};
  for (const int64_t steps : {1, 2, 5, 20}) samplers.push_back({EmcmcGibbsSpec{.eta = 1 / kG, .inner_steps = steps}});
  for (const SamplerSpec& sampler : samplers) {
    const double heat = *HeatOfNoise(sampler, kAlpha);
    EXPECT_NEAR(ExactHeat(sampler, kAlpha, 1e-4 * kG), heat, 1e-3 * heat) << sampler.name();
    // A stiff direction does not see its anchor. Its step is small, so that the error of the step is small, too.
    EXPECT_NEAR(ExactHeat(sampler, 1e-9, 1e4 * kG), 1e-9 / 2, 5e-3 * 1e-9) << sampler.name();
  }
  EXPECT_DOUBLE_EQ(*HeatOfNoise(samplers[0], kAlpha), kAlpha / 4);
  EXPECT_DOUBLE_EQ(*HeatOfNoise(samplers[1], kAlpha), kAlpha / 2) << "one inner step: theta_a is drawn at each step";
  EXPECT_LT(*HeatOfNoise(samplers[4], kAlpha), 0.57 * kAlpha / 2);
}

TEST(HeatOfNoise, IsAbsentWhereTheInnerChainDiverges) {
  EXPECT_FALSE(HeatOfNoise({EmcmcGibbsSpec{.eta = 0.01, .inner_steps = 2}}, 0.03).has_value());
  EXPECT_DOUBLE_EQ(*HeatOfNoise({EmcmcGibbsSpec{.eta = 0.5, .inner_steps = 3}}, 1), 1.5) << "r = -1";
}

}  // namespace
}  // namespace chainfleet
