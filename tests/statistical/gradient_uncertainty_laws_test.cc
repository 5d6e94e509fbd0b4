// Tests gradient-uncertainty sampling: the law of its statistic, the share of steps that its quantile keeps, and the
// steps with and without a draw. tests/mutation shows that these tests can fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/kernel_rows.h"

namespace chainfleet {
namespace {

using ::testing::Each;
using testing::Estimate;
using testing::EstimateOf;
using testing::KernelRows;

constexpr int64_t kBatch = 4;
// N / n, the ratio of the gradient of U to the sum over the batch.
constexpr double kScale = 8;

void ExpectLaw(const char* what, const Estimate& estimate, double law) {
  EXPECT_NEAR(estimate.value, law, 4 * estimate.error) << what << " +- " << estimate.error;
  EXPECT_LE(estimate.error, 0.004 * std::abs(law)) << what << " is measured too roughly to mean it";
}

// Writes X_i [d], the gradient of example i of `n` at a chain's step.
using MakeGradient = std::function<void(StepKey at, int64_t i, float* x)>;

// Examples with the test's gradients, unscaled, for every theta.
class ScriptedGradients final : public Potential {
 public:
  ScriptedGradients(int64_t dimension, int64_t batch, MakeGradient make)
      : layout_(std::make_shared<const Layout>(std::vector<ParameterShape>{{"x", {dimension}, 0, 0}})),
        num_examples_(static_cast<int64_t>(kScale) * batch),
        make_(std::move(make)) {}

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return num_examples_; }
  bool EvaluateWithNorms(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy,
                         double* squared_norms) override {
    std::vector<float> x(layout_->num_parameters());
    for (int64_t row = 0; row < theta.rows(); ++row) {
      std::vector<float> sum(x.size());
      for (int64_t i = 0; i < batch.size; ++i) {
        make_(batch.keys[row], i, x.data());
        double square = 0;
        for (size_t p = 0; p < x.size(); ++p) {
          sum[p] += x[p];
          square += x[p] * x[p];  // in float, as in networks: it may overflow
        }
        *squared_norms++ = square;
      }
      for (float& value : sum) value *= static_cast<float>(kScale);
      gradient->WriteRow(row, sum);
      energy[row] = 0;
    }
    return true;
  }
  void Evaluate(const ThetaArena&, const BatchRows&, ThetaArena*, double*) override {}
  void Losses(const ThetaArena&, const BatchRows&, double*) override {}
  void LogPrior(const ThetaArena&, const double*, double*) override {}

 private:
  const std::shared_ptr<const Layout> layout_;
  const int64_t num_examples_;
  const MakeGradient make_;
};

// X_i ~ N(mean, C), C diagonal, independent.
MakeGradient Normal(std::vector<double> mean, std::vector<double> stddev) {
  return [mean, stddev](StepKey at, int64_t i, float* x) {
    for (size_t p = 0; p < mean.size(); ++p) {
      const auto index = static_cast<uint32_t>(i * static_cast<int64_t>(mean.size()) + static_cast<int64_t>(p));
      x[p] = static_cast<float>(mean[p] + stddev[p] * NormalDouble(at.key, RngStream::kProbe, at.step, index));
    }
  };
}

struct Moments {
  Estimate mean, square;  // square: of the value minus `about`
};

// Moments of the values that the kernel records in burn-in.
Moments NotedValues(const std::vector<double>& mean, const std::vector<double>& stddev, bool scale_free, int64_t steps,
                    double about) {
  ScriptedGradients potential(static_cast<int64_t>(mean.size()), kBatch, Normal(mean, stddev));
  KernelRows rows(GradientUncertainty{{.scale_free = scale_free}}, &potential, kBatch, 1000, 31, 1e-3, 1,
                  {.burn_in_steps = steps});
  for (int64_t step = 0; step < steps; ++step) rows.Step();
  std::vector<double> values, squares;
  for (const std::vector<double>& numbers : rows.state().numbers) {
    EXPECT_EQ(static_cast<int64_t>(numbers.size()), 1 + steps);
    for (size_t i = 1; i < numbers.size(); ++i) {
      values.push_back(numbers[i]);
      squares.push_back((numbers[i] - about) * (numbers[i] - about));
    }
  }
  return {EstimateOf(values), EstimateOf(squares)};
}

// Mean 0, variance 2 m (m - 1) tr(C^2).
TEST(GradientUncertaintyLaws, GradientsThatAverageToNothingHaveTheVarianceOfTheMethod) {
  const Moments noted = NotedValues({0, 0, 0, 0}, {1, 0.8, 1.2, 0.9}, false, 400, 0);
  EXPECT_NEAR(noted.mean.value, 0, 4 * noted.mean.error);
  const double trace = 1 + std::pow(0.8, 4) + std::pow(1.2, 4) + std::pow(0.9, 4);
  ExpectLaw("variance", noted.square, 2 * kBatch * (kBatch - 1) * trace);
}

// With a mean mu: m (m - 1) |mu|^2, and the variance grows by 4 m (m - 1)^2 mu' C mu.
TEST(GradientUncertaintyLaws, GradientsThatAgreeRaiseItByTheSquareOfTheirMean) {
  const double law = kBatch * (kBatch - 1) * (0.36 + 0.64);
  const Moments noted = NotedValues({0.6, 0, 0.8}, {0.3, 0.4, 0.5}, false, 200, law);
  ExpectLaw("mean", noted.mean, law);
  const double trace = std::pow(0.3, 4) + std::pow(0.4, 4) + std::pow(0.5, 4), along = 0.36 * 0.09 + 0.64 * 0.25;
  ExpectLaw("variance", noted.square,
            2 * kBatch * (kBatch - 1) * trace + 4 * kBatch * (kBatch - 1) * (kBatch - 1) * along);
}

// For C = c I, 1 + GU / sum |X_i|^2 is m times a Beta(d / 2, (m - 1) d / 2) variable for every c: variance (m - 1) / (m
// d / 2 + 1).
TEST(GradientUncertaintyLaws, ScaleFreeFormHasTheLawOfABetaVariableAtAnyScale) {
  for (const double scale : {0.01, 30.0}) {
    const Moments noted = NotedValues({0, 0}, {scale, scale}, true, 250, 0);
    EXPECT_NEAR(noted.mean.value, 0, 4 * noted.mean.error) << scale;
    ExpectLaw("variance", noted.square, (kBatch - 1) / (kBatch + 1.0));
  }
}

// The threshold is the (k + 1)-th smallest of B values seen in burn-in, k = floor(q B): a value of the same law is
// below it with probability (k + 1) / (B + 1), for every law.
TEST(GradientUncertaintyLaws, QuantileOfBurnInKeepsItsShareOfTheSteps) {
  constexpr int64_t kBurnIn = 99, kSteps = 150, kRows = 1500;
  for (const double quantile : {0.5, 0.8}) {
    ScriptedGradients potential(1, 2, Normal({0.3}, {1}));
    KernelRows rows(GradientUncertainty{{.quantile = quantile}}, &potential, 2, kRows, 32, 1e-3, 1,
                    {.burn_in_steps = kBurnIn});
    std::vector<double> kept(kRows);
    for (int64_t step = 0; step < kBurnIn + kSteps; ++step) {
      const std::vector<StepInfo> info = rows.Step();
      for (int64_t row = 0; row < kRows; ++row) {
        ASSERT_FALSE(step < kBurnIn && info[row].kept) << "a draw in burn-in";
        kept[row] += info[row].kept ? 1.0 / kSteps : 0;
      }
    }
    ExpectLaw("kept", EstimateOf(kept), (std::floor(quantile * kBurnIn) + 1) / (kBurnIn + 1));
  }
}

TEST(GradientUncertaintyLaws, LongBurnInIsNotedEvenlySpaced) {
  constexpr int64_t kBurnIn = 3 * GradientUncertainty::kMaxValues;
  // GU = 2 X_1 X_2 = t / 50.
  ScriptedGradients potential(
      1, 2, [](StepKey at, int64_t i, float* x) { x[0] = i == 0 ? 1.0f : 0.01f * static_cast<float>(at.step); });
  KernelRows rows(GradientUncertainty{{.scale_free = false}}, &potential, 2, 1, 33, 1e-9, 0,
                  {.burn_in_steps = kBurnIn});
  for (int64_t step = 0; step < kBurnIn; ++step) rows.Step();
  const std::vector<double>& numbers = rows.state().numbers[0];
  ASSERT_EQ(static_cast<int64_t>(numbers.size()), 1 + GradientUncertainty::kMaxValues);
  for (size_t i = 1; i < numbers.size(); ++i) ASSERT_NEAR(numbers[i], 0.06 * static_cast<double>(i - 1), 0.01);
}

// Two examples of equal or of opposite gradients, at random, in the first coordinate: GU = 2 or -2, and only the first
// moves a step without noise.
bool Agree(StepKey at) { return RandomBlock(at.key, RngStream::kProbe, at.step, 0).word[0] % 2 == 0; }

TEST(GradientUncertaintyLaws, AKeptStepKeepsThetaAndHasNoiseAndAnotherNeither) {
  constexpr int64_t kRows = 60, kSteps = 10, kDimension = 1000;
  constexpr double kAlpha = 0.02, kTemperature = 0.7;
  ScriptedGradients potential(kDimension, 2, [](StepKey at, int64_t i, float* x) {
    std::fill_n(x, kDimension, 0.0f);
    x[0] = i == 0 || Agree(at) ? 1.0f : -1.0f;
  });
  for (const bool scale_free : {true, false}) {
    KernelRows rows(GradientUncertainty{{.threshold = 0, .scale_free = scale_free}}, &potential, 2, kRows, 34, kAlpha,
                    kTemperature);
    std::vector<double> squares;
    for (int64_t step = 0; step < kSteps; ++step) {
      const ThetaArena before = rows.state().theta().Clone(), kept_before = rows.state().arenas[1].Clone();
      const std::vector<StepInfo> info = rows.Step();
      for (int64_t row = 0; row < kRows; ++row) {
        const bool agree = Agree({rows.chain(row).key, static_cast<uint64_t>(step)});
        ASSERT_EQ(info[row].kept, !agree);
        std::vector<float> theta = rows.state().theta().ReadRow(row), old = before.ReadRow(row);
        ASSERT_EQ(rows.state().arenas[1].ReadRow(row), agree ? kept_before.ReadRow(row) : old);
        if (agree) {
          ASSERT_NEAR(theta[0], old[0] - kAlpha * kScale * 2, 1e-5);
          ASSERT_TRUE(std::equal(theta.begin() + 1, theta.end(), old.begin() + 1)) << "noise in a step not kept";
        } else {
          for (int64_t p = 0; p < kDimension; ++p) squares.push_back(std::pow(double(theta[p]) - old[p], 2));
        }
      }
    }
    ExpectLaw("noise variance", EstimateOf(squares), 2 * kAlpha * kTemperature);
  }
}

// 0 / 0 and inf - inf have no order.
TEST(GradientUncertaintyLaws, BatchesWithoutAGradientOrBeyondFloatsAreNotedAsWhatTheyAre) {
  for (const bool scale_free : {true, false}) {
    for (const float gradient : {0.0f, 1e30f}) {
      ScriptedGradients potential(2, 2, [&](StepKey, int64_t, float* x) { x[0] = x[1] = gradient; });
      KernelRows rows(GradientUncertainty{{.scale_free = scale_free}}, &potential, 2, 1, 35, 1e-40, 1,
                      {.burn_in_steps = 4});
      for (int64_t step = 0; step < 6; ++step) {
        const StepInfo info = rows.Step()[0];
        EXPECT_TRUE(info.finite);
        EXPECT_FALSE(info.kept);
      }
      EXPECT_THAT(rows.state().numbers[0], Each(::testing::Not(::testing::IsNan())));
    }
  }
}

}  // namespace
}  // namespace chainfleet
