// Compares gradient variance, curvature and rounding with closed forms, and tests that a measurement changes no chain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "tests/support/kernel_rows.h"
#include "tests/support/network_fixture.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/batch/potential_factory.h"
#include "worker/numerics/tracing/chain_reporter.h"
#include "worker/numerics/tracing/curvature.h"
#include "worker/numerics/tracing/gradient_variance.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<Potential> Analytic(PotentialKind density) {
  JobPlan plan;
  plan.spec.model.kind = std::move(density);
  return std::move(*MakePotential(plan, nullptr, Device{}));
}

// Returns `rows` rows of `theta` [D] with keys of their own.
struct Rows {
  Rows(Potential* potential, Minibatches kind, int64_t batch_size, int64_t rows, const std::vector<float>& theta)
      : batches(kind, potential->num_examples(), batch_size),
        theta(potential->layout(), Device{}),
        scratch(ThetaArena(potential->layout(), Device{})),
        inputs{potential, &batches, &plan, chains, &scratch} {
    for (int64_t row = 0; row < rows; ++row) {
      this->theta.AddRow();
      this->theta.WriteRow(row, theta);
      chains.push_back({Fold(RngKey{77}, static_cast<uint64_t>(row)), 0, 0, 1, true});
    }
  }
  MinibatchPlan batches;
  StepPlan plan;
  ThetaArena theta;
  StepScratch scratch;
  std::vector<ChainStep> chains;
  StepInputs inputs;
};

std::vector<double> CurvatureAt(Potential* potential, const std::vector<float>& theta, int64_t rows = 1) {
  Rows at(potential, Minibatches::kReshuffle, 0, rows, theta);
  return MeasureCurvature(at.inputs, &at.theta);
}

TEST(Curvature, IsTheLargestEigenvalueOfAGaussiansPrecision) {
  GaussianPotential gaussian;
  gaussian.dimension = 2;
  gaussian.covariance = {4, 2, 2, 3};
  gaussian.mean = {3, -20};
  const auto potential = Analytic(gaussian);
  const double least_variance = (7 - std::sqrt(17.0)) / 2;
  for (const double curvature : CurvatureAt(potential.get(), {0, 0.5}, 5)) {
    EXPECT_NEAR(curvature, 1 / least_variance, 2e-3 / least_variance);
  }
}

TEST(Curvature, IsExactWhereAllDirectionsAreAlike) {
  const auto potential = Analytic(GaussianPotential{100'000, 2.5});
  EXPECT_NEAR(CurvatureAt(potential.get(), std::vector<float>(100'000, 1.0f))[0], 2.5, 2.5e-3);
}

TEST(Curvature, IsPositiveBesideALargerNegativeOne) {
  GaussianMixturePotential mixture;
  mixture.dimension = 2;
  mixture.weights = {1, 1};
  mixture.means = {-2, 0, 2, 0};
  const auto potential = Analytic(mixture);
  EXPECT_NEAR(CurvatureAt(potential.get(), {0, 0})[0], 1, 5e-3);  // the Hessian is diag(-3, 1)
}

TEST(Curvature, IsNotFiniteWhereTheGradientIsNot) {
  const auto potential = Analytic(GaussianPotential{3, 1.0});
  EXPECT_FALSE(std::isfinite(CurvatureAt(potential.get(), {0, std::nanf(""), 0})[0]));
}

TEST(LargestEigenvalue, MatchesTheSecondDifferenceMatrix) {
  for (const int n : {1, 2, 7, 40}) {
    const std::vector<double> diagonal(n, 2.0), beside(n, -1.0);
    EXPECT_NEAR(LargestEigenvalue(diagonal, beside), 2 - 2 * std::cos(n * std::numbers::pi / (n + 1)), 1e-12) << n;
  }
  EXPECT_NEAR(LargestEigenvalue({-5, -3}, {0}), -3, 1e-12);
}

class RegressionReport : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 96, kBatch = 8;
  static constexpr double kNoise = 4, kPrecision = 3;

  RegressionReport() {
    plan_.spec.model.kind = PotentialKind(LinearRegressionPotential{.noise_variance = kNoise});
    plan_.spec.prior.kind = GaussianPrior{kPrecision};
    plan_.dataset = data_->description();
    plan_.normalisation = data_->description().normalisation;
    potential_ = std::move(*MakePotential(plan_, data_, Device{}));
  }

  // Standardised inputs and a one for the intercept.
  std::vector<double> Inputs(int64_t i) const {
    return {(table_.inputs[2 * i] - 0.3) / 1.7, (table_.inputs[2 * i + 1] - 0.3) / 1.7, 1};
  }

  // N^2 / n times the variance over examples of -d log lik / d theta, mean over coordinates, with replacement.
  double ExactVariance(const std::vector<float>& theta) const {
    double mean[3] = {}, square[3] = {};
    for (int64_t i = 0; i < kRows; ++i) {
      const std::vector<double> x = Inputs(i);
      const double residual = theta[0] * x[0] + theta[1] * x[1] + theta[2] - table_.targets[i];
      for (int j = 0; j < 3; ++j) {
        const double gradient = residual * x[j] / kNoise;
        mean[j] += gradient / kRows;
        square[j] += gradient * gradient / kRows;
      }
    }
    double sum = 0;
    for (int j = 0; j < 3; ++j) sum += (square[j] - mean[j] * mean[j]) / 3;
    return static_cast<double>(kRows * kRows) / kBatch * sum;
  }

  const Table table_ = MakeTable(kRows, 2, /*labels=*/false);
  const std::shared_ptr<const ResidentDataset> data_ = Resident(table_);
  JobPlan plan_;
  std::unique_ptr<Potential> potential_;
};

TEST_F(RegressionReport, GradientVarianceMatchesTheJobsOwnBatches) {
  const std::vector<float> theta = {0.4f, -1.0f, 2.0f};
  const double finite = static_cast<double>(kRows - kBatch) / (kRows - 1);
  for (const Minibatches kind : {Minibatches::kIndependent, Minibatches::kReshuffle}) {
    Rows at(potential_.get(), kind, kBatch, 3000, theta);
    const auto estimate = testing::EstimateOf(MeasureGradientVariance(at.inputs, &at.theta));
    const double exact = ExactVariance(theta) * (kind == Minibatches::kReshuffle ? finite : 1);
    EXPECT_LT(estimate.error, 0.004 * exact);
    EXPECT_NEAR(estimate.value, exact, 4 * estimate.error) << static_cast<int>(kind);
  }
}

TEST_F(RegressionReport, CurvatureOfASmallDataSetUsesAllRows) {
  // X' X / noise + precision, by power iteration in double.
  double h[3][3] = {};
  for (int64_t i = 0; i < kRows; ++i) {
    const std::vector<double> x = Inputs(i);
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) h[a][b] += x[a] * x[b] / kNoise;
    }
  }
  double v[3] = {1, 1, 1}, exact = 0;
  for (int step = 0; step < 1000; ++step) {
    double w[3];
    for (int a = 0; a < 3; ++a) w[a] = h[a][0] * v[0] + h[a][1] * v[1] + h[a][2] * v[2] + kPrecision * v[a];
    exact = std::hypot(w[0], w[1], w[2]);
    for (int a = 0; a < 3; ++a) v[a] = w[a] / exact;
  }
  Rows at(potential_.get(), Minibatches::kReshuffle, kBatch, 3, {0.4f, -1.0f, 2.0f});
  for (const double curvature : MeasureCurvature(at.inputs, &at.theta)) EXPECT_NEAR(curvature, exact, 2e-3 * exact);
}

TEST(NoiseUlps, TakesTheTensorWhoseUlpIsLargest) {
  const Layout layout({{"small", {2}, 0, 1}, {"large", {1}, 2, 1}, {"zero", {1}, 3, 1}});
  const double ulp = std::ldexp(1.0, 1 - 23);  // ulp of 3
  EXPECT_DOUBLE_EQ(*NoiseUlps(ulp / 4, layout, {1.5f, 1.5f, 3.0f, 0.0f}), 0.25);
  EXPECT_FALSE(NoiseUlps(1, layout, {0, 0, 0, 0}).has_value());
}

// Returns the steps (from 0) before which a measurement is due.
std::vector<int64_t> DueOf(const JobSpec& spec) {
  const StepPlan plan = PlanSteps(spec, 1000);
  const ChainReporter reporter(&spec, &plan, nullptr, nullptr);
  std::vector<int64_t> due;
  for (int64_t t = 0; t < plan.total_steps; ++t) {
    if (reporter.IsDue(t)) due.push_back(t);
  }
  return due;
}

TEST(ChainReporter, MeasuresAtTheStartInEachWindowAndAtTheEndOfEachCycle) {
  JobSpec spec;
  spec.sampler.kind = SgldSpec{};
  spec.schedule.kind = CyclicalSchedule{0.1, 0, 2};
  spec.batch_size = 1;
  spec.num_epochs = 4;
  spec.collect.last_epochs_of_cycle = 1;
  EXPECT_THAT(DueOf(spec), ElementsAre(0, 1999, 3999));  // the first draw is a cycle's last state
  spec.collect = {.every_steps = 300};
  spec.burn_in.steps = 2500;
  EXPECT_THAT(DueOf(spec), ElementsAre(0, 1999, 3299, 3999));
}

TEST(ChainReporter, SkipsCyclesThatMeasuringWouldDominate) {
  JobSpec spec;
  spec.sampler.kind = SgldSpec{};
  spec.schedule.kind = CyclicalSchedule{0.1, 0, 10};
  spec.batch_size = 10;
  spec.num_epochs = 20;  // cycles of 200 steps: every fourth
  spec.collect.last_epochs_of_cycle = 1;
  EXPECT_THAT(DueOf(spec), ElementsAre(0, 399, 1199, 1999));
}

TEST(ChainReporter, LeavesTheBitsOfAChainAsTheyAre) {
  const auto data = SyntheticImages(96);
  const auto potential = MakeNetwork("softmax_regression", data);
  JobSpec spec;
  spec.sampler.kind = EmcmcSpec{.eta = 0.01};
  spec.batch_size = 16;
  spec.num_steps = 20;
  const StepPlan plan = PlanSteps(spec, 96);
  const StepSizeSchedule schedule(spec, plan, 96);
  const MinibatchPlan batches(Minibatches::kReshuffle, 96, 16);
  ChainReporter reporter(&spec, &plan, potential.get(), &batches);
  const Kernel kernel = *MakeKernel(spec.sampler);
  std::vector<std::vector<float>> ends;
  for (const bool measured : {false, true}) {
    SamplerState state;
    for (int i = 0; i < 2; ++i) state.arenas.push_back(RandomTheta(potential->layout(), 3));
    state.numbers.resize(3);
    std::vector<ChainStep> chains;
    for (uint64_t row = 0; row < 3; ++row) chains.push_back({Fold(RngKey{5}, row), 0, 1e-4, 0.5, true});
    std::vector<std::optional<RunReport>> reports(3);
    StepScratch scratch(ThetaArena(potential->layout(), Device{}));
    for (int t = 0; t < 20; ++t) {
      if (measured) {
        reporter.Measure(
            {{0, 0, &schedule, &reports[0]}, {1, 0, &schedule, &reports[1]}, {2, 0, &schedule, &reports[2]}}, chains,
            state.theta());
      }
      std::visit([&](const auto& k) { k.Step({potential.get(), &batches, &plan, chains, &scratch}, &state); }, kernel);
      for (ChainStep& chain : chains) ++chain.t;
    }
    for (const ThetaArena& arena : state.arenas) ends.push_back(arena.ReadRow(1));
    if (measured) {
      ASSERT_TRUE(reports[1].has_value());
      EXPECT_GT(*reports[1]->gradient_variance, 0);
      EXPECT_DOUBLE_EQ(*reports[1]->effective_temperature, 0.5 + 1e-4 * *reports[1]->gradient_variance / 4);
      EXPECT_GT(*reports[1]->curvature, 25);
      EXPECT_LT(*reports[1]->stable_below, 2 / *reports[1]->curvature);
    }
  }
  EXPECT_EQ(ends[0], ends[2]);
  EXPECT_EQ(ends[1], ends[3]);
}

}  // namespace
}  // namespace chainfleet
