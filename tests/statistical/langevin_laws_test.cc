// Compares SGLD, SGHMC and EMCMC on a quadratic, through the public job interface, with their exact finite-step laws:
// all draws of a few chains. tests/mutation shows that these tests can fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/estimate.h"
#include "tests/support/langevin_law.h"
#include "tests/support/stationary_job.h"

namespace chainfleet {
namespace {

using testing::Estimate;
using testing::EstimateOf;
using ::testing::IsEmpty;
using testing::Law;
using testing::Misfits;
using testing::MomentTraces;
using testing::RunForMoments;
using testing::StationaryJob;
using testing::StationaryLaw;

constexpr double kPrecision = 2, kAlpha = 0.2, kTemperature = 0.7, kCoupling = 2.5;

MomentTraces MomentsOf(const SamplerSpec& sampler) {
  return RunForMoments({.sampler = sampler, .k = kPrecision, .step_size = kAlpha, .temperature = kTemperature})[0];
}

// T / (k (1 - alpha k / 2)).
TEST(SgldLaws, GaussianVarianceMatchesTheFiniteStep) {
  const Law law{kTemperature / (kPrecision * (1 - kAlpha * kPrecision / 2)), 0, 0};
  EXPECT_THAT(Misfits(MomentsOf({SgldSpec{}}), law), IsEmpty());
}

// T (A - alpha A^2 / 2)^-1.
Law EmcmcLaw() {
  const double a11 = kPrecision + kCoupling, a12 = -kCoupling, a22 = kCoupling;
  const double m11 = a11 - kAlpha / 2 * (a11 * a11 + a12 * a12), m12 = a12 - kAlpha / 2 * a12 * (a11 + a22),
               m22 = a22 - kAlpha / 2 * (a22 * a22 + a12 * a12);
  const double determinant = m11 * m22 - m12 * m12;
  return {kTemperature * m22 / determinant, -kTemperature * m12 / determinant, kTemperature * m11 / determinant};
}

TEST(EmcmcLaws, GaussianCovarianceMatchesTheFiniteStep) {
  EXPECT_THAT(Misfits(MomentsOf({EmcmcSpec{1 / kCoupling}}), EmcmcLaw()), IsEmpty());
}

// T / (k (1 - alpha k / (2 (2 - a)))).
TEST(SghmcLaws, FrictionFormStaysAtTheVarianceOfTheFiniteStep) {
  const double a = 0.3;
  const Law law{kTemperature / (kPrecision * (1 - kAlpha * kPrecision / (2 * (2 - a)))), 0, 0};
  EXPECT_THAT(Misfits(MomentsOf({SghmcSpec{a}}), law), IsEmpty());
}

TEST(SghmcLaws, BaoaStaysAtTheExactVariance) {
  const Law law{kTemperature / kPrecision, 0, 0};
  EXPECT_THAT(Misfits(MomentsOf({SghmcSpec{0.3, SghmcScheme::kBaoa}}), law), IsEmpty());
}

TEST(LawOfAQuadratic, RecursionAndClosedFormAgree) {
  const Law closed = EmcmcLaw(),
            found = StationaryLaw(
                {.k = kPrecision, .coupling = kCoupling, .step_size = kAlpha, .temperature = kTemperature});
  EXPECT_NEAR(found.var, closed.var, 1e-9);
  EXPECT_NEAR(found.cov, closed.cov, 1e-9);
  EXPECT_NEAR(found.var_a, closed.var_a, 1e-9);
}

TEST(LawOfAQuadratic, RefusesWhatIsTwoPercentOffOrTooLittleToTell) {
  const MomentTraces traces = MomentsOf({SgldSpec{}});
  const Law law = StationaryLaw({.k = kPrecision, .step_size = kAlpha, .temperature = kTemperature});
  EXPECT_EQ(Misfits(traces, {law.var * 1.02, 0, 0}).size(), 1u);
  EXPECT_EQ(Misfits(traces, {law.var / 1.02, 0, 0}).size(), 1u);
  EXPECT_EQ(Misfits(RunForMoments({.sampler = {SgldSpec{}}, .dimension = 50})[0], law).size(), 1u);
}

// Three estimates of the error of one variance from the same draws: from the traces' effective sample size; from the
// spread over coordinates, each averaged over all draws of its chain; and from theory, where theta^2 of an
// autoregression with coefficient phi has coefficient phi^2.
TEST(StandardErrors, AgreeForTracesAndIndependentCoordinates) {
  const StationaryJob job = {.sampler = {SgldSpec{}}, .dimension = 1000, .draws = 4000, .chains = 8};
  std::vector<double> averages(job.chains * job.dimension);
  std::vector<double> moments(job.chains * job.draws);
  std::vector<int64_t> draws(job.chains);
  testing::RunJob(job, [&](int32_t chain, const Draw& draw) {
    double& moment = moments[chain * job.draws + draws[chain]++];
    for (int64_t i = 0; i < job.dimension; ++i) {
      const double square = double{draw.theta[0][i]} * draw.theta[0][i];
      averages[chain * job.dimension + i] += square / static_cast<double>(job.draws);
      moment += square / static_cast<double>(job.dimension);
    }
  });
  const Estimate of_traces = EstimateOf(Traces{moments, job.chains}), of_coordinates = EstimateOf(averages);
  const double phi = 1 - job.step_size * job.k, phi2 = phi * phi, independent = static_cast<double>(moments.size());
  const double variance = job.temperature / (job.k * (1 - job.step_size * job.k / 2));
  const double law =
      variance * std::sqrt(2 * (1 + phi2) / (1 - phi2) / independent / static_cast<double>(job.dimension));
  EXPECT_NEAR(of_traces.value, of_coordinates.value, 1e-9);
  EXPECT_NEAR(of_coordinates.error, law, 0.03 * law) << "8,000 coordinates";
  EXPECT_NEAR(of_traces.error, law, 0.06 * law) << "32,000 draws";
}

}  // namespace
}  // namespace chainfleet
