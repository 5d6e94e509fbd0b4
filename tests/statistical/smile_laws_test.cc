// Microcanonical Langevin dynamics on mini-batches: one step by its formula, and the stationary law under noise of a
// known covariance (worker/numerics/samplers/smile.h).
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/estimate.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/noisy_gaussian.h"

namespace chainfleet {
namespace {

using testing::KernelRows;
using testing::NoisyGaussian;

enum : size_t { kTheta, kVelocity, kScale = 3 };
enum : size_t { kBegunNumber, kSpeedNumber, kStepNumber };

SmileSpec Dynamics(double step) {
  return {.optimizer_steps = 0, .warm_up_steps = 0, .initial_step = step, .precondition = false};
}

SamplerState& StateOf(KernelRows& rows) { return const_cast<SamplerState&>(rows.state()); }

// From x = (1, -1/2, 1/4), u = (.6, 0, .8), s = (1.2, .8, 1): the values of a step in double precision.
TEST(SmileDynamics, FollowTheirFormula) {
  struct Case {
    double temperature;
    std::vector<double> x, u;
  };
  for (const Case& expected :
       {Case{1, {1.21074638442, -.279759404095, .643700388163}, {.365193501305, .574035321473, .732882771189}},
        Case{2, {1.234661269639, -.389990399986, .653682716678}, {.505808219482, .323660926621, .799625943604}}}) {
    NoisyGaussian potential({1, 4, .25}, {0, 0, 0}, {.3, -.2, .5});
    KernelRows rows(Smile{Dynamics(0.5)}, &potential, 0, 1, 1, 1, expected.temperature);
    SamplerState& state = StateOf(rows);
    const double x[] = {1, -.5, .25}, u[] = {.6, 0, .8}, s[] = {1.2, .8, 1};
    for (int i = 0; i < 3; ++i) {
      state.arenas[kTheta].row(0)[i] = static_cast<float>(x[i]);
      state.arenas[kVelocity].row(0)[i] = static_cast<float>(u[i] / s[i]);
      state.arenas[kScale].row(0)[i] = static_cast<float>(1 / (s[i] * s[i]));
    }
    state.numbers[0][kBegunNumber] = state.numbers[0][kSpeedNumber] = 1;
    ASSERT_TRUE(rows.Step()[0].finite);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(state.arenas[kTheta].row(0)[i], expected.x[i], 2e-6) << i;
      EXPECT_NEAR(state.arenas[kVelocity].row(0)[i] * s[i], expected.u[i], 2e-6) << i;
    }
    EXPECT_NEAR(state.numbers[0][kSpeedNumber], 1, 1e-6);
  }
}

// Without a force, noise of equal variance is a refresh: the mean of u . u' is 1 / cosh(eps sigma sqrt(D) / (D - 1)) in
// high dimension, and exp(-eps / L) times that with a refresh. The expected values are those of D = 400.
TEST(SmileDynamics, NoiseTurnsTheVelocity) {
  constexpr int kSize = 400, kRows = 20, kSteps = 1500;
  NoisyGaussian potential(std::vector<double>(kSize, 0), std::vector<double>(kSize, std::sqrt(20.0)));
  for (const double length : {0.0, 20.0}) {
    SmileSpec spec = Dynamics(0.1 * std::sqrt(kSize));
    if (length > 0) spec.decoherence_length = length;
    KernelRows rows(Smile{spec}, &potential, 0, kRows, 3, 1);
    std::vector<double> cosines(kRows);
    std::vector<std::vector<float>> before(kRows);
    for (int step = 0; step <= kSteps; ++step) {
      rows.Step();
      for (int row = 0; row < kRows; ++row) {
        const float* u = rows.state().arenas[kVelocity].row(row);
        const double size = rows.state().numbers[row][kSpeedNumber];
        std::vector<float> now(u, u + kSize);
        for (float& coordinate : now) coordinate /= static_cast<float>(size);
        for (int i = 0; step > 0 && i < kSize; ++i) cosines[row] += before[row][i] * now[i] / kSteps;
        before[row] = std::move(now);
      }
    }
    const testing::Estimate mean = testing::EstimateOf(cosines);
    EXPECT_NEAR(mean.value, length > 0 ? .82128 : .90750, 5e-4) << length;
    EXPECT_LT(mean.error, 2e-4);
  }
}

// Four groups of coordinates: precision 1 or 1/4, noise of `small` or `large` times the mean variance.
struct Groups {
  int size;
  double mean_noise, small, large;

  double precision(int i) const { return i % 2 == 0 ? 1 : 0.25; }
  double noise(int i) const { return mean_noise * (i / 2 % 2 == 0 ? small : large); }
  NoisyGaussian Potential() const {
    std::vector<double> precision_of, deviation;
    for (int i = 0; i < size; ++i) {
      precision_of.push_back(precision(i));
      deviation.push_back(std::sqrt(noise(i)));
    }
    return {precision_of, deviation};
  }
};

// The temperatures lambda_i Var x_i of the groups in this order: small noise, then large; precision 1, then 1/4.
std::vector<testing::Estimate> Temperatures(const Groups& groups, KernelRows* rows, int burn_in, int steps) {
  for (int step = 0; step < burn_in; ++step) rows->Step();
  std::vector<std::vector<double>> of(4, std::vector<double>(static_cast<size_t>(rows->rows())));
  std::vector<double> means;
  for (int step = 0; step < steps; ++step) {
    rows->Step();
    for (int64_t row = 0; row < rows->rows(); ++row) {
      const float* x = rows->state().theta().row(row);
      for (int i = 0; i < groups.size; ++i) {
        of[i % 4][row] += groups.precision(i) * x[i] * x[i] * 4 / groups.size / steps;
      }
    }
  }
  std::vector<testing::Estimate> found;
  for (const auto& values : of) found.push_back(testing::EstimateOf(values));
  return found;
}

// Coordinate i has the temperature of its noise relative to the mean, times 1 + 5/6 eta^2.
TEST(SmileLaws, WithoutAScaleTheNoiseSetsTheTemperature) {
  const Groups groups{.size = 400, .mean_noise = 100, .small = .5, .large = 1.5};
  NoisyGaussian potential = groups.Potential();
  KernelRows rows(Smile{Dynamics(0.02 * std::sqrt(400.0))}, &potential, 0, 32, 5, 1);
  const auto found = Temperatures(groups, &rows, 600, 5000);
  for (size_t group = 0; group < 4; ++group) {
    const double expected = (group < 2 ? .5 : 1.5) * (1 + 5.0 / 6 * 0.01);
    EXPECT_NEAR(found[group].value, expected, 0.015 * expected) << group;
    EXPECT_LT(found[group].error, 0.006 * expected) << group;
  }
}

// A refresh that turns as much as the noise halves its effect; .5624 and 1.4738 are those of this step and dimension.
TEST(SmileLaws, ARefreshMakesUpForTheNoise) {
  const Groups groups{.size = 400, .mean_noise = 40, .small = .1, .large = 1.9};
  NoisyGaussian potential = groups.Potential();
  SmileSpec spec = Dynamics(0.05 * std::sqrt(400.0));
  spec.decoherence_length = std::sqrt(400.0);
  KernelRows rows(Smile{spec}, &potential, 0, 32, 9, 1);
  const auto found = Temperatures(groups, &rows, 600, 5000);
  for (size_t group = 0; group < 4; ++group) {
    const double expected = group < 2 ? .5624 : 1.4738;
    EXPECT_NEAR(found[group].value, expected, 0.02 * expected) << group;
    EXPECT_LT(found[group].error, 0.006 * expected) << group;
  }
}

// Coordinates with the density w N(m, 1) + (1 - w) N(-m, 1).
class NoisyTwoModes final : public NoisyGaussian {
 public:
  static constexpr double kWeight = 0.75, kMode = 1.3;
  NoisyTwoModes(int size, double noise)
      : NoisyGaussian(std::vector<double>(size, 1), std::vector<double>(size, std::sqrt(noise))) {}

  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    NoisyGaussian::Evaluate(theta, batch, gradient, energy);
    for (int64_t row = 0; row < theta.rows(); ++row) {
      for (int64_t i = 0; i < theta.layout().num_parameters(); ++i) {
        const double up = kWeight * std::exp(kMode * theta.row(row)[i]);
        const double down = (1 - kWeight) * std::exp(-kMode * theta.row(row)[i]);
        gradient->row(row)[i] -= static_cast<float>(kMode * (up - down) / (up + down));
        energy[row] -= std::log(up + down);
      }
    }
  }
};

// Noise that is the same for all coordinates biases no law: neither alone nor beside a refresh.
TEST(SmileLaws, TwoModesHaveTheirWeights) {
  constexpr int kSize = 200, kRows = 16, kBurnIn = 1000, kSteps = 6000;
  NoisyTwoModes potential(kSize, 20);
  for (const double length : {0.0, 20.0}) {
    SmileSpec spec = Dynamics(0.03 * std::sqrt(kSize));
    if (length > 0) spec.decoherence_length = length;
    KernelRows rows(Smile{spec}, &potential, 0, kRows, 11, 1);
    for (int step = 0; step < kBurnIn; ++step) rows.Step();
    std::vector<double> means(kRows), squares(kRows);
    for (int step = 0; step < kSteps; ++step) {
      rows.Step();
      for (int row = 0; row < kRows; ++row) {
        const float* x = rows.state().theta().row(row);
        for (int i = 0; i < kSize; ++i) {
          means[row] += x[i] / (1.0 * kSize * kSteps);
          squares[row] += x[i] * x[i] / (1.0 * kSize * kSteps);
        }
      }
    }
    const testing::Estimate mean = testing::EstimateOf(means), square = testing::EstimateOf(squares);
    EXPECT_NEAR(mean.value, 0.5 * NoisyTwoModes::kMode, 0.013) << length;
    EXPECT_NEAR(square.value, 1 + NoisyTwoModes::kMode * NoisyTwoModes::kMode, 0.04) << length;
    EXPECT_LT(mean.error, 0.006) << length;
    EXPECT_LT(square.error, 0.01) << length;
  }
}

// With the scale of its own warm-up all coordinates have the temperature of the job, and the mean is unbiased.
TEST(SmileLaws, TheScaleGivesAllCoordinatesOneTemperature) {
  const Groups groups{.size = 200, .mean_noise = 20, .small = .1, .large = 1.9};
  NoisyGaussian potential = groups.Potential();
  for (const double temperature : {1.0, 0.5}) {
    SmileSpec spec = Dynamics(0.05 * std::sqrt(200.0));
    spec.precondition = true;
    spec.warm_up_steps = 7000;
    spec.noise_share = 1e12;  // no refresh
    KernelRows rows(Smile{spec}, &potential, 0, 24, 7, 1, temperature);
    for (int step = 0; step < spec.warm_up_steps; ++step) rows.Step();
    for (auto& numbers : StateOf(rows).numbers) numbers[kStepNumber] = spec.initial_step;  // not the tuner's
    const auto found = Temperatures(groups, &rows, 600, 12'000);
    for (size_t group = 0; group < 4; ++group) {
      const double eta = spec.initial_step * std::sqrt(groups.mean_noise / 200) / (2 * temperature);
      EXPECT_NEAR(found[group].value / temperature, 1 + 5.0 / 6 * eta * eta, 0.015)
          << group << " at T = " << temperature;
      EXPECT_LT(found[group].error / temperature, 0.006) << group;
    }
    for (size_t group = 0; group < 2; ++group) {
      EXPECT_NEAR(found[group].value / found[group + 2].value, 1, 0.02) << group << " at T = " << temperature;
    }
  }
}

}  // namespace
}  // namespace chainfleet
