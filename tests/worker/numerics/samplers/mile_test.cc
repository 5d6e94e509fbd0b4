// The phases of microcanonical Langevin ensembles, by the numbers and arenas of the kernel's state. Its stationary laws
// are in tests/statistical/posterior_laws_test.cc.
#include "worker/numerics/samplers/mile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/kernel_rows.h"
#include "worker/numerics/potentials/gaussian_potential.h"

namespace chainfleet {
namespace {

using testing::KernelRows;

constexpr int64_t kSize = 64;  // coordinates
enum : size_t { kWaitedNumber = 1, kEnergyNumber = 3, kSpeedNumber, kStepNumber, kLengthNumber, kSquareNumber = 12 };

std::shared_ptr<const Layout> Coordinates() {
  return std::make_shared<const Layout>(std::vector<ParameterShape>{{"x", {kSize}, 0, 0}});
}

MileSpec WarmUp(int64_t steps) { return {.optimizer_steps = 0, .warm_up_steps = steps, .initial_step = 0.01}; }

struct Tuned {
  double step = 0, length = 0;  // means over the rows
};

Tuned Tune(const MileSpec& spec, double precision, int64_t rows = 40) {
  const auto potential = MakeGaussianPotential(GaussianPotential{kSize, precision}, Coordinates(), Device{});
  KernelRows chains(Mile{spec}, potential.get(), 0, rows, 3, 1e-3);
  for (int64_t step = 0; step < spec.own_burn_in(); ++step) chains.Step();
  Tuned tuned;
  for (const std::vector<double>& numbers : chains.state().numbers) {
    tuned.step += numbers[kStepNumber] / static_cast<double>(rows);
    tuned.length += numbers[kLengthNumber] / static_cast<double>(rows);
  }
  return tuned;
}

// The mean square of a step's energy error, by coordinate, in a state of the law of U = |x|^2 / 2.
double EnergyVariance(double eps, double length) {
  constexpr int kSteps = 400, kBurnIn = 200, kRows = 20;
  const auto potential = MakeGaussianPotential(GaussianPotential{kSize, 1.0}, Coordinates(), Device{});
  MileSpec spec = WarmUp(0);
  spec.initial_step = eps;
  spec.decoherence_length = length;
  KernelRows chains(Mile{spec}, potential.get(), 0, kRows, 8, 1e-3);
  const MinibatchPlan batches(Minibatches::kReshuffle, 1, 0);
  const StepPlan plan;
  StepScratch scratch(ThetaArena(potential->layout(), Device{}));
  double sum = 0;
  for (int step = 0; step < kBurnIn + kSteps; ++step) {
    chains.Step();
    if (step < kBurnIn) continue;
    auto& now = const_cast<SamplerState&>(chains.state());  // only read
    std::vector<ChainStep> at;
    std::vector<MicrocanonicalRow> rows;
    for (int64_t row = 0; row < kRows; ++row) {
      at.push_back(chains.chain(row));
      const std::vector<double>& numbers = now.numbers[row];
      rows.push_back({numbers[kEnergyNumber], numbers[kSpeedNumber], numbers[kSquareNumber], eps, length});
    }
    const StepInputs inputs = {potential.get(), &batches, &plan, at, &scratch};
    scratch.Arena(2, now.theta());
    const auto moves = MoveMicrocanonically(
        inputs, rows, {&now.arenas[0], &now.arenas[1], &now.arenas[2]},
        {&scratch.Arena(0, now.theta()), &scratch.Arena(1, now.theta()), &scratch.Arena(2, now.theta())});
    for (const MicrocanonicalMove& move : moves) sum += move.energy_error * move.energy_error / kSize;
  }
  return sum / (kSteps * kRows);
}

// The first turn of a step takes it from the step before; the gradient of |x|^2 / 2 is x.
TEST(MileDynamics, KnowTheSquareOfTheGradient) {
  const auto potential = MakeGaussianPotential(GaussianPotential{kSize, 1.0}, Coordinates(), Device{});
  MileSpec spec = WarmUp(0);
  spec.initial_step = 0.5;
  spec.decoherence_length = 3;
  KernelRows chains(Mile{spec}, potential.get(), 0, 2, 3, 1e-3);
  for (int step = 0; step < 5; ++step) chains.Step();
  for (int64_t row = 0; row < 2; ++row) {
    const float* x = chains.state().arenas[0].row(row);
    const double square = std::inner_product(x, x + kSize, x, 0.0);
    EXPECT_NEAR(chains.state().numbers[row][kSquareNumber], square, 1e-5 * square);
  }
}

TEST(MileTuner, ReachesItsEnergyVariance) {
  for (const double target : {1e-4, 1e-3}) {
    MileSpec spec = WarmUp(2000);
    spec.energy_variance_start = spec.energy_variance_end = target;
    const Tuned tuned = Tune(spec, 1);
    EXPECT_NEAR(EnergyVariance(tuned.step, tuned.length) / target, 1, 0.25) << "step " << tuned.step;
  }
}

// theta -> theta / 10 changes nothing but the unit of length.
TEST(MileTuner, HasTheUnitOfTheta) {
  MileSpec spec = WarmUp(4000);
  spec.energy_variance_start = spec.energy_variance_end = 5e-4;
  const Tuned wide = Tune(spec, 1), narrow = Tune(spec, 100);
  EXPECT_NEAR(wide.step / narrow.step, 10, 0.3);
  EXPECT_NEAR(wide.length / narrow.length, 10, 1.5);
  EXPECT_GT(wide.length, 0.4 * wide.step) << "an autocorrelation time is one step or more";
  EXPECT_LT(wide.length, 15) << "that of the warm-up";
}

TEST(MileTuner, TakesTheGivenLength) {
  MileSpec spec = WarmUp(400);
  spec.decoherence_length = 3.5;
  EXPECT_NEAR(Tune(spec, 1).length, 3.5, 1e-12);
}

TEST(MileTuner, UndoesStepsThatAreNotFinite) {
  const auto potential = MakeGaussianPotential(GaussianPotential{kSize, 1.0}, Coordinates(), Device{});
  MileSpec spec = WarmUp(4000);
  spec.initial_step = 1e30;
  KernelRows chains(Mile{spec}, potential.get(), 0, 2, 3, 1e-3);
  for (int step = 0; step < 1000; ++step) {
    for (const StepInfo& info : chains.Step()) ASSERT_TRUE(info.finite) << step;
  }
  EXPECT_LT(chains.state().numbers[0][kStepNumber], 100);
  spec.warm_up_steps = 0;
  KernelRows fixed(Mile{spec}, potential.get(), 0, 2, 3, 1e-3);
  EXPECT_FALSE(fixed.Step()[0].finite) << "without a tuner nothing may be undone";
}

// Examples with losses (x_0 - i)^2 / 2. Parameter 0 goes to the mean of the examples that it trains on.
class Table final : public Potential {
 public:
  static constexpr int64_t kRows = 40;
  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return kRows; }
  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    const double scale = static_cast<double>(kRows) / static_cast<double>(batch.size);
    std::vector<double> losses(theta.rows() * batch.size);
    Losses(theta, batch, losses.data());
    for (int64_t row = 0; row < theta.rows(); ++row) {
      double sum = 0, slope = 0;
      for (int64_t i = 0; i < batch.size; ++i) {
        sum += losses[row * batch.size + i];
        slope += theta.row(row)[0] - static_cast<double>(batch.row(row)[i]);
        seen_.insert(batch.row(row)[i]);
      }
      energy[row] = scale * sum;
      gradient->row(row)[0] = static_cast<float>(scale * slope);
      gradient->row(row)[1] = theta.row(row)[1];
    }
  }
  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    for (int64_t row = 0; row < theta.rows(); ++row) {
      for (int64_t i = 0; i < batch.size; ++i) {
        const double gap = theta.row(row)[0] - static_cast<double>(batch.row(row)[i]);
        losses[row * batch.size + i] = gap * gap / 2;
      }
    }
  }
  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    std::fill_n(log_prior, theta.rows(), 0.0);
  }
  std::set<int64_t>& seen() { return seen_; }

 private:
  const std::shared_ptr<const Layout> layout_ =
      std::make_shared<const Layout>(std::vector<ParameterShape>{{"x", {2}, 0, 0}});
  std::set<int64_t> seen_;
};

// The mean of the ids that are in `ids`, or are not.
double MeanId(const std::set<int64_t>& ids, bool inside) {
  double sum = 0, count = 0;
  for (int64_t id = 0; id < Table::kRows; ++id) {
    if (ids.contains(id) != inside) continue;
    sum += static_cast<double>(id);
    ++count;
  }
  return sum / count;
}

// v <- 0.9 v + grad U; theta <- theta - alpha v, where U = sum (theta_0 - i)^2 / 2.
TEST(MileDescent, HeavyBallFollowsItsFormula) {
  constexpr double kAlpha = 0.1 / Table::kRows;
  const MileSpec spec{
      .optimizer_steps = 100, .descent = Optimizer::kHeavyBall, .validation_fraction = 0, .warm_up_steps = 0};
  Table table;
  KernelRows chain(Mile{spec}, &table, Table::kRows, 1, 1, kAlpha);
  double theta = chain.theta(0), momentum = 0;
  for (int step = 0; step < 50; ++step) {
    chain.Step();
    momentum = 0.9 * momentum + Table::kRows * (theta - (Table::kRows - 1) / 2.0);
    theta -= kAlpha * momentum;
    EXPECT_NEAR(chain.theta(0), theta, 1e-4) << step;
  }
}

// AdamW passes the best point of the validation part on its way to the mean of the others, and on.
TEST(MileDescent, StopsAtTheBestPointOfTheValidationPart) {
  const MileSpec spec{
      .optimizer_steps = 2000, .validation_fraction = 0.5, .patience = 3, .warm_up_steps = 0, .initial_step = 1e-9};
  double passed = 0;
  for (uint64_t seed = 1; passed < 3 && seed < 100; ++seed) {  // a split that puts the two means apart
    Table table;
    KernelRows chain(Mile{spec}, &table, 40, 1, seed, 0.1 / Table::kRows);
    chain.Step();
    passed = MeanId(table.seen(), true) - MeanId(table.seen(), false);
    if (passed < 3) continue;
    for (int step = 1; step < 2000; ++step) chain.Step();
    EXPECT_EQ(chain.state().numbers[0][kWaitedNumber], 3) << "no step after the patience has ended";
    EXPECT_EQ(table.seen().size(), 20u) << "AdamW may not see the validation part";
    const double best = MeanId(table.seen(), false);
    chain.Step();
    EXPECT_NEAR(chain.theta(0), best, 0.11) << "within one step of AdamW";
    EXPECT_EQ(table.seen().size(), 40u) << "the dynamics see all data";
  }
  EXPECT_GE(passed, 3);
}

// The order of a row's examples is kept between steps; after a resume it is computed again.
TEST(MileDescent, HasTheSameBitsWithAKeptSplitAndWithANewOne) {
  const MileSpec spec{.optimizer_steps = 30, .validation_fraction = 0.25, .warm_up_steps = 0, .initial_step = 1e-9};
  Table table, again;
  KernelRows kept(Mile{spec}, &table, Table::kRows, 3, 5, 0.1 / Table::kRows);
  KernelRows resumed(Mile{spec}, &again, Table::kRows, 3, 5, 0.1 / Table::kRows);
  std::shared_ptr<void> split;
  for (int step = 0; step < 40; ++step) {
    resumed.ForgetDerived();
    kept.Step();
    resumed.Step();
    if (step == 0) split = kept.state().derived[0];
    EXPECT_EQ(kept.state().derived[0].get(), step < 30 ? split.get() : nullptr)
        << "the dynamics need no split: " << step;
    EXPECT_EQ(kept.state().numbers, resumed.state().numbers) << step;
    for (int64_t row = 0; row < 3; ++row) EXPECT_EQ(kept.theta(row), resumed.theta(row)) << step;
  }
  EXPECT_TRUE(split != nullptr);
}

}  // namespace
}  // namespace chainfleet
