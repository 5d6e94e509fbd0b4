// Compares the stochastic-gradient kernels on a quadratic, through the public job interface, with the exact law of
// their recursion after the same steps, and the recursion with the closed forms of their stationary laws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/support/langevin_law.h"
#include "tests/support/linear_law.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {
namespace {

using testing::CovarianceAfter;
using ::testing::IsEmpty;
using testing::Law;
using testing::LinearStep;
using testing::Misfits;
using testing::Outer;
using testing::Samples;
using testing::Then;
using testing::Zeros;

constexpr double kK = 2, kAlpha = 0.2, kT = 0.7, kEta = 0.4;
constexpr int kSteps = 48;

// Many independent coordinates of U = k x^2 / 2, started at 0, after kSteps steps.
Samples RunJob(const SamplerSpec& sampler, PriorSpec prior = {}) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "law-aaaaaa";
  plan->spec.name = "law";
  plan->spec.model.kind = GaussianPotential{250'000, kK};
  plan->spec.prior = prior;
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{kAlpha}};
  plan->spec.temperature = kT;
  plan->spec.num_steps = kSteps;
  plan->spec.chains = 2;
  plan->spec.seed = 20250314;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int chain = 0; chain < 2; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  for (int step = 0; step < kSteps; ++step) EXPECT_TRUE((*batch)->Step().ok());
  Samples samples;
  for (int chain = 0; chain < 2; ++chain) {
    const Draw draw = (*batch)->TakeDraw(chain);
    samples.theta.insert(samples.theta.end(), draw.theta[0].begin(), draw.theta[0].end());
    if (draw.theta.size() == 1) continue;
    samples.theta_a.insert(samples.theta_a.end(), draw.theta[1].begin(), draw.theta[1].end());
  }
  return samples;
}

// Returns the law of (theta, theta_a), the first entries of the state.
Law LawAfter(size_t size, const std::function<LinearStep(int64_t)>& step, int64_t steps = kSteps) {
  const auto sigma = CovarianceAfter(size, steps, step);
  return {sigma[0][0], sigma[0][1], sigma[1][1]};
}

LinearStep Langevin(double noise_variance) { return {{{1 - kAlpha * kK}}, {{noise_variance}}}; }

TEST(SgldLaws, NoiseCorrectedFormInjectsWhatTheGradientLacks) {
  const double v = 3, noise = 2 * kAlpha * kT - kAlpha * kAlpha * v;
  const auto sigma = CovarianceAfter(1, kSteps, [&](int64_t) { return Langevin(noise); });
  EXPECT_THAT(Misfits(RunJob({SgldSpec{.gradient_noise = v}}), {sigma[0][0], 0, 0}), IsEmpty());
  EXPECT_NEAR(sigma[0][0], (kT - kAlpha * v / 2) / (kK * (1 - kAlpha * kK / 2)), 1e-9);
}

TEST(SgldLaws, NoiseFreePartOfACycleOnlyDrifts) {
  const auto sigma = CovarianceAfter(1, kSteps, [&](int64_t t) { return Langevin(t < 47 ? 0 : 2 * kAlpha * kT); });
  EXPECT_THAT(Misfits(RunJob({SgldSpec{.noise_free_fraction = 47.0 / 48}}), {sigma[0][0], 0, 0}), IsEmpty());
}

LinearStep FrictionStep(double a) {
  const double q = 2 * a * kAlpha * kT;
  return {{{1 - kAlpha * kK, 1 - a}, {-kAlpha * kK, 1 - a}}, {{q, q}, {q, q}}};
}

TEST(SghmcLaws, FrictionFormHasItsFiniteStepVariance) {
  const double a = 0.3;
  const auto step = [&](int64_t) { return FrictionStep(a); };
  EXPECT_THAT(Misfits(RunJob({SghmcSpec{a}}), LawAfter(2, step)), IsEmpty());
  EXPECT_NEAR(LawAfter(2, step, 2000).var, kT / (kK * (1 - kAlpha * kK / (2 * (2 - a)))), 1e-9);
}

TEST(SghmcLaws, BaoaHasTheExactVariance) {
  const double a = 0.3, c = 1 - a, e = std::sqrt(kAlpha);
  const LinearStep kick{{{1, 0}, {-e * kK, 1}}, Zeros(2)}, drift{{{1, e / 2}, {0, 1}}, Zeros(2)},
      friction{{{1, 0}, {0, c}}, Outer({0, std::sqrt(kT * (1 - c * c))})};
  const LinearStep whole = Then(Then(Then(kick, drift), friction), drift);
  const auto step = [&](int64_t) { return whole; };
  EXPECT_THAT(Misfits(RunJob({SghmcSpec{a, SghmcScheme::kBaoa}}), LawAfter(2, step)), IsEmpty());
  EXPECT_NEAR(LawAfter(2, step, 2000).var, kT / kK, 1e-9);
}

TEST(EmcmcGibbsLaws, ThetaAndItsAnchorHaveTheirFiniteStepLaw) {
  const double g = 1 / kEta;
  const LinearStep refresh{{{1, 0}, {1, 0}}, Outer({0, std::sqrt(kEta * kT)})},
      move{{{1 - kAlpha * (kK + g), kAlpha * g}, {0, 1}}, Outer({std::sqrt(2 * kAlpha * kT), 0})};
  for (const int64_t inner : {1, 5}) {
    const auto step = [&](int64_t t) { return t % inner == 0 ? Then(refresh, move) : move; };
    EXPECT_THAT(Misfits(RunJob({EmcmcGibbsSpec{kEta, inner}}), LawAfter(2, step)), IsEmpty()) << inner;
  }
  const Law one = LawAfter(
      2, [&](int64_t) { return Then(refresh, move); }, 2000);
  const double var = kT * (1 + kAlpha * g / 2) / (kK * (1 - kAlpha * kK / 2));
  EXPECT_NEAR(one.var, var, 1e-9);
  EXPECT_NEAR(one.var_a, var + kEta * kT, 1e-9);
}

// State: theta, the inner chain, its running mean.
Law EntropyLaw(double eta, int64_t inner, double averaging, double outer_noise) {
  const double g = 1 / eta, k = kAlpha;
  const LinearStep restart{{{1, 0, 0}, {0, 1, 0}, {0, 1, 0}}, Zeros(3)},
      move{{{1, 0, 0}, {k * g, 1 - k * (kK + g), 0}, {0, 0, 1}}, Outer({0, std::sqrt(2 * kAlpha * kT), 0})},
      average{{{1, 0, 0}, {0, 1, 0}, {0, 1 - averaging, averaging}}, Zeros(3)},
      publish{{{0, 0, 1}, {0, 1, 0}, {0, 0, 1}}, Outer({outer_noise, 0, 0})};
  return LawAfter(3, [&](int64_t t) {
    LinearStep step = Then(move, average);
    if (t % inner == 0) step = Then(restart, step);
    return (t + 1) % inner == 0 ? Then(step, publish) : step;
  });
}

TEST(EntropyLaws, ThetaFollowsTheMeanOfTheInnerChain) {
  EXPECT_THAT(Misfits(RunJob({EntropySgdSpec{kEta, 6, 0.75}}), {EntropyLaw(kEta, 6, 0.75, 0).var, 0, 0}), IsEmpty());
}

TEST(EntropyLaws, EntropySgldAddsItsNoiseToTheta) {
  const double noise = std::sqrt(kAlpha * kEta);  // N = 1: h = alpha
  EXPECT_THAT(Misfits(RunJob({EntropySgldSpec{kEta, 6, 0.75}}), {EntropyLaw(kEta, 6, 0.75, noise).var, 0, 0}),
              IsEmpty());
}

}  // namespace
}  // namespace chainfleet
