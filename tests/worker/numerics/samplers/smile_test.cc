// The phases of microcanonical dynamics on mini-batches, by the numbers and arenas of the kernel's state. Its laws are
// in tests/statistical/smile_laws_test.cc.
#include "worker/numerics/samplers/smile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/kernel_rows.h"
#include "tests/support/noisy_gaussian.h"

namespace chainfleet {
namespace {

using testing::KernelRows;
using testing::NoisyGaussian;

constexpr int kSize = 100, kRows = 8;
enum : size_t { kVelocity = 1, kScale = 3 };
enum : size_t { kStepNumber = 2, kLengthNumber = 8 };

SmileSpec WarmUp(int64_t steps) { return {.optimizer_steps = 0, .warm_up_steps = steps, .initial_step = 0.01}; }

// Noise of variance 1 or 9 in turn.
NoisyGaussian Noisy() {
  std::vector<double> deviation(kSize);
  for (int i = 0; i < kSize; ++i) deviation[i] = i % 2 == 0 ? 1 : 3;
  return {std::vector<double>(kSize, 1), deviation};
}

TEST(SmileWarmUp, MeasuresTheNoiseThenFreezes) {
  NoisyGaussian potential = Noisy();
  const SmileSpec spec = WarmUp(4000);
  KernelRows rows(Smile{spec}, &potential, 0, kRows, 3, 1e-3);
  for (int step = 0; step < 2000; ++step) {
    EXPECT_EQ(rows.state().arenas[kScale].row(0)[1], step == 0 ? 0 : 1) << step;
    rows.Step();
  }
  double small = 0, large = 0;  // means of 1 / s^2 over coordinates and rows, where the mean of s^2 is 1
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kSize; i += 2) {
      small += rows.state().arenas[kScale].row(row)[i] * 2 / (kSize * kRows);
      large += rows.state().arenas[kScale].row(row)[i + 1] * 2 / (kSize * kRows);
    }
  }
  EXPECT_NEAR(small, 5, 0.1);
  EXPECT_NEAR(large, 5.0 / 9, 0.01);
  for (int step = 2000; step < 4000; ++step) rows.Step();
  const double step_after = rows.state().numbers[0][kStepNumber], scale_after = rows.state().arenas[kScale].row(0)[0];
  for (int step = 0; step < 100; ++step) ASSERT_TRUE(rows.Step()[0].finite);
  EXPECT_EQ(rows.state().numbers[0][kStepNumber], step_after);
  EXPECT_EQ(rows.state().arenas[kScale].row(0)[0], scale_after);
}

// Noise so strong that it sets the step: its mean square is 1e6.
TEST(SmileWarmUp, BoundsTheAngleOfHalfAStep) {
  NoisyGaussian potential(std::vector<double>(kSize, 1), std::vector<double>(kSize, 1000));
  SmileSpec spec = WarmUp(2000);
  spec.precondition = false;
  spec.energy_variance_start = spec.energy_variance_end = 1e6;  // without the bound, longer and longer steps
  constexpr int kRows = 64;
  KernelRows rows(Smile{spec}, &potential, 0, kRows, 3, 1e-3);
  for (int step = 0; step < spec.warm_up_steps; ++step) rows.Step();
  double share = 0;
  for (const auto& numbers : rows.state().numbers) {
    EXPECT_NEAR(numbers[kStepNumber] * 1000 / (2 * std::sqrt(kSize)), Smile::kLargestTurn, 0.01);
    share += numbers[kStepNumber] * numbers[kLengthNumber] * 1e6 / (2 * kSize) / kRows;
  }
  EXPECT_NEAR(share, spec.noise_share, 0.015 * spec.noise_share) << "of the turning by noise";
}

// The kinetic energy that half a step of a direction u adds, by its formula in microcanonical.h.
double TurnsBy(double eps, const float* u, const float* gradient) {
  double square = 0, product = 0, length = 0;
  for (int i = 0; i < kSize; ++i) {
    square += double{gradient[i]} * gradient[i];
    product -= double{gradient[i]} * u[i];
    length += double{u[i]} * u[i];
  }
  const double cosine = product / std::sqrt(square * length), way = eps / 2 * std::sqrt(square) / (kSize - 1);
  return (kSize - 1) * (way - std::log(2) + std::log(1 + cosine + (1 - cosine) * std::exp(-2 * way)));
}

// From the states before and after steps of the law, each with the gradients of its own batch.
TEST(SmileTuner, ReachesItsEnergyVariance) {
  constexpr int kSteps = 500;
  NoisyGaussian potential(std::vector<double>(kSize, 1), std::vector<double>(kSize, 2));
  for (const double target : {1e-5, 4e-5}) {  // below what kLargestTurn bounds
    SmileSpec spec = WarmUp(2000);
    spec.precondition = false;
    spec.energy_variance_start = spec.energy_variance_end = target;
    KernelRows rows(Smile{spec}, &potential, 0, kRows, 3, 1e-3);
    for (int step = 0; step < spec.warm_up_steps; ++step) rows.Step();
    ThetaArena gradients = rows.state().theta().Clone(), gradients_after = gradients.Clone();
    std::vector<double> energies(kRows), energies_after(kRows);
    double variance = 0;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<StepKey> keys;
      for (int row = 0; row < kRows; ++row) keys.push_back({rows.chain(row).key, uint64_t(rows.chain(row).t)});
      const BatchRows batch{.keys = keys.data()};
      const ThetaArena before = rows.state().theta().Clone(), velocity = rows.state().arenas[kVelocity].Clone();
      potential.Evaluate(before, batch, &gradients, energies.data());
      rows.Step();
      const ThetaArena& after = rows.state().theta();
      potential.Evaluate(after, batch, &gradients_after, energies_after.data());
      for (int row = 0; row < kRows; ++row) {
        const double eps = rows.state().numbers[row][kStepNumber];
        std::vector<float> way(kSize);  // that of the drift
        for (int i = 0; i < kSize; ++i) way[i] = after.row(row)[i] - before.row(row)[i];
        const double error = energies_after[row] - energies[row] + TurnsBy(eps, velocity.row(row), gradients.row(row)) +
                             TurnsBy(eps, way.data(), gradients_after.row(row));
        variance += error * error / kSize / (kSteps * kRows);
      }
    }
    EXPECT_NEAR(variance / target, 1, 0.25) << "step " << rows.state().numbers[0][kStepNumber];
  }
}

TEST(SmileWarmUp, UndoesStepsThatAreNotFinite) {
  NoisyGaussian potential = Noisy();
  SmileSpec spec = WarmUp(3000);
  spec.initial_step = 1e30;
  KernelRows rows(Smile{spec}, &potential, 0, 2, 3, 1e-3);
  for (int step = 0; step < 1000; ++step) {
    for (const StepInfo& info : rows.Step()) ASSERT_TRUE(info.finite) << step;
  }
  EXPECT_LT(rows.state().numbers[0][kStepNumber], 100);
  spec.warm_up_steps = 0;
  KernelRows fixed(Smile{spec}, &potential, 0, 2, 3, 1e-3);
  EXPECT_FALSE(fixed.Step()[0].finite) << "after the warm-up nothing may be undone";
}

TEST(SmileWarmUp, KeepsTheScaleWithoutPreconditioningOrNoise) {
  NoisyGaussian noisy = Noisy(), still(std::vector<double>(kSize, 1), std::vector<double>(kSize, 0));
  NoisyGaussian rounding(std::vector<double>(kSize, 1), std::vector<double>(kSize, 1e-3));
  for (NoisyGaussian* potential : {&noisy, &still, &rounding}) {
    SmileSpec spec = WarmUp(200);
    spec.precondition = potential != &noisy;
    spec.decoherence_length = 5;
    KernelRows rows(Smile{spec}, potential, 0, 2, 3, 1e-3);
    for (int step = 0; step < 250; ++step) ASSERT_TRUE(rows.Step()[1].finite) << step;
    for (int i = 0; i < kSize; ++i) ASSERT_EQ(rows.state().arenas[kScale].row(1)[i], 1);
  }
}

TEST(SmileDescent, FollowsMiniBatchesFirst) {
  NoisyGaussian potential(std::vector<double>(kSize, 1), std::vector<double>(kSize, 0), std::vector<double>(kSize, -3));
  SmileSpec spec = WarmUp(0);
  spec.optimizer_steps = 400;
  spec.descent = Optimizer::kHeavyBall;
  KernelRows rows(Smile{spec}, &potential, 0, 2, 3, 0.05);
  for (int step = 0; step < spec.optimizer_steps; ++step) rows.Step();
  for (int i = 0; i < kSize; ++i) EXPECT_NEAR(rows.state().theta().row(1)[i], 3, 1e-4);
}

}  // namespace
}  // namespace chainfleet
