// SGLD and EMCMC on a quadratic, through the public job interface, against their exact finite-step laws. That these
// tests can fail is shown by tests/mutation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/langevin_law.h"
#include "worker/numerics/chain_batch.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;
using testing::Law;
using testing::Misfits;
using testing::Quadratic;
using testing::Samples;
using testing::StationaryLaw;

constexpr double kPrecision = 2, kAlpha = 0.2, kTemperature = 0.7, kCoupling = 2.5;

// A Gaussian job of independent coordinates, run to stationarity.
Samples RunJob(const SamplerSpec& sampler) {
  constexpr int64_t kDimension = 250000;
  constexpr int kChains = 2, kSteps = 50;
  auto plan = std::make_shared<JobPlan>();
  plan->job = "law-aaaaaa";
  plan->spec.name = "law";
  plan->spec.model.kind = GaussianPotential{kDimension, kPrecision};
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{kAlpha}};
  plan->spec.temperature = kTemperature;
  plan->spec.num_steps = kSteps;
  plan->spec.chains = kChains;
  plan->spec.seed = 20240607;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int chain = 0; chain < kChains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  for (int step = 0; step < kSteps; ++step) EXPECT_TRUE((*batch)->Step().ok());
  Samples samples;
  for (int chain = 0; chain < kChains; ++chain) {
    const DrawTensors draw = (*batch)->TakeDraw(chain);
    samples.theta.insert(samples.theta.end(), draw.kinds[0].begin(), draw.kinds[0].end());
    if (draw.kinds.size() > 1) {
      samples.theta_a.insert(samples.theta_a.end(), draw.kinds[1].begin(), draw.kinds[1].end());
    }
  }
  return samples;
}

// T / (k (1 - alpha k / 2)).
TEST(SgldLaws, GaussianVarianceIsThatOfTheFiniteStep) {
  const Law law{kTemperature / (kPrecision * (1 - kAlpha * kPrecision / 2)), 0, 0};
  EXPECT_THAT(Misfits(RunJob({SgldSpec{}}), law), IsEmpty());
}

// T (A - alpha A^2 / 2)^-1.
Law EmcmcLaw() {
  const double a11 = kPrecision + kCoupling, a12 = -kCoupling, a22 = kCoupling;
  const double m11 = a11 - kAlpha / 2 * (a11 * a11 + a12 * a12), m12 = a12 - kAlpha / 2 * a12 * (a11 + a22),
               m22 = a22 - kAlpha / 2 * (a22 * a22 + a12 * a12);
  const double determinant = m11 * m22 - m12 * m12;
  return {kTemperature * m22 / determinant, -kTemperature * m12 / determinant, kTemperature * m11 / determinant};
}

TEST(EmcmcLaws, GaussianCovarianceIsThatOfTheFiniteStep) {
  EXPECT_THAT(Misfits(RunJob({EmcmcSpec{1 / kCoupling}}), EmcmcLaw()), IsEmpty());
}

TEST(LawOfAQuadratic, RecursionAndClosedFormAgree) {
  const Law closed = EmcmcLaw(),
            found = StationaryLaw(
                {.k = kPrecision, .coupling = kCoupling, .step_size = kAlpha, .temperature = kTemperature});
  EXPECT_NEAR(found.var, closed.var, 1e-9);
  EXPECT_NEAR(found.cov, closed.cov, 1e-9);
  EXPECT_NEAR(found.var_a, closed.var_a, 1e-9);
}

TEST(LawOfAQuadratic, RefusesSamplesTwoPercentOffOrTooFewToTell) {
  Samples samples = RunJob({SgldSpec{}});
  const Law law = StationaryLaw({.k = kPrecision, .step_size = kAlpha, .temperature = kTemperature});
  EXPECT_EQ(Misfits(samples, {law.var * 1.02, 0, 0}).size(), 1u);
  EXPECT_EQ(Misfits(samples, {law.var / 1.02, 0, 0}).size(), 1u);
  samples.theta.resize(1000);
  EXPECT_EQ(Misfits(samples, law).size(), 1u);
}

}  // namespace
}  // namespace chainfleet
