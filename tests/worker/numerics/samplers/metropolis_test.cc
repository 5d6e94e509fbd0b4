// Tests properties of Metropolis kernels that laws of many chains do not show: each row's decision, the data used, and
// the draws of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/kernel_rows.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/samplers/batch_differences.h"
#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/noisy_acceptance.h"

namespace chainfleet {
namespace {

using ::testing::Each;
using testing::KernelRows;
using testing::OneParameter;

// loss_i(x) = (x - i)^2 / 2 for i < N, prior precision 3; nothing is finite where x is beyond `edge`.
class Spring final : public Potential {
 public:
  explicit Spring(int64_t examples, double edge = 1e6) : examples_(examples), edge_(edge) {}
  static constexpr double kPrior = 3;

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return examples_; }
  double prior_precision() const override { return kPrior; }
  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    num_losses_ += batch.size;
    for (int64_t row = 0; row < theta.rows(); ++row) {
      for (int64_t i = 0; i < batch.size; ++i) {
        const double gap = At(theta, row) - static_cast<double>(batch.row(row)[i]);
        *losses++ = gap * gap / 2;
      }
    }
  }
  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    for (int64_t row = 0; row < theta.rows(); ++row) log_prior[row] = -kPrior / 2 * std::pow(At(theta, row), 2);
  }
  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    largest_batch_ = std::max(largest_batch_, batch.size);
    for (int64_t row = 0; row < theta.rows(); ++row) {
      double sum = 0;
      for (int64_t i = 0; i < batch.size; ++i) sum += At(theta, row) - static_cast<double>(batch.row(row)[i]);
      gradient->row(row)[0] = static_cast<float>(static_cast<double>(examples_) / batch.size * sum);
      energy[row] = 0;
    }
  }
  int64_t largest_batch() const { return largest_batch_; }
  int64_t num_losses() const { return num_losses_; }  // a row

 private:
  double At(const ThetaArena& theta, int64_t row) const {
    const double x = theta.row(row)[0];
    return std::abs(x) > edge_ ? std::numeric_limits<double>::quiet_NaN() : x;
  }
  const int64_t examples_;
  const double edge_;
  int64_t largest_batch_ = 0, num_losses_ = 0;
  const std::shared_ptr<const Layout> layout_ = OneParameter();
};

// The inputs of one step on `potential`, for the functions that kernels call.
struct Fixture {
  explicit Fixture(Potential* potential, int64_t batch_size, std::vector<float> at)
      : batches(Minibatches::kReshuffle, potential->num_examples(), batch_size),
        scratch(ThetaArena(potential->layout(), Device{})),
        theta(state.arenas.emplace_back(potential->layout(), Device{})),
        inputs{potential, &batches, &plan, chains, &scratch} {
    for (size_t row = 0; row < at.size(); ++row) {
      state.AddRow();
      theta.row(static_cast<int64_t>(row))[0] = at[row];
      chains.push_back({Fold(RngKey{5}, row), 7, 0.1, 1, true});
    }
  }
  const MinibatchPlan batches;
  const StepPlan plan;
  StepScratch scratch;
  std::vector<ChainStep> chains;
  SamplerState state;
  ThetaArena& theta;
  const StepInputs inputs;
};

TEST(FullData, GradientOfChunksMatchesTheWholeWithThePriorOnce) {
  Spring spring(1000);
  Fixture at(&spring, 16, {2, -3});
  ThetaArena gradient = at.theta.Clone();
  std::fill_n(gradient.row(0), 1, std::nanf(""));  // the old content has no influence
  GradientOverAllData(at.inputs, at.theta, &gradient);
  for (int64_t row : {0, 1}) {
    EXPECT_NEAR(gradient.row(row)[0], 1000 * at.theta.row(row)[0] - 999 * 1000 / 2.0, 0.1);
  }
  EXPECT_LE(spring.largest_batch(), 128) << "a pass over the data is in bounded parts";
}

TEST(FullData, EnergyChangeIsSummedByExampleWithThePriorAndTheWeight) {
  Spring spring(1000);
  Fixture from(&spring, 200, {2, -3}), to(&spring, 200, {2.5, -3});
  const auto changes = ChangeOverAllData(from.inputs, to.theta, 0.5, &from.state);
  double energy = 1.5 * 4, change = 1.5 * (6.25 - 4);
  for (int i = 0; i < 1000; ++i) {
    energy += 0.25 * (2 - i) * (2 - i);
    change += 0.25 * ((2.5 - i) * (2.5 - i) - (2 - i) * (2 - i));
  }
  EXPECT_NEAR(changes[0].energy, energy, 1e-6);
  EXPECT_NEAR(changes[0].change, change, 1e-8);
  EXPECT_EQ(changes[1].change, 0);
}

TEST(MinibatchPlan, BatchesOfAStepAreDisjointAndThoseOfTwoStepsDiffer) {
  const MinibatchPlan plan(Minibatches::kIndependent, 100, 10);
  std::vector<int64_t> first(100), next(100), some(30);
  plan.FillDisjoint(RngKey{1}, 4, RngStream::kAccept, 100, first.data());
  plan.FillDisjoint(RngKey{1}, 5, RngStream::kAccept, 100, next.data());
  plan.FillDisjoint(RngKey{1}, 4, RngStream::kAccept, 30, some.data());
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 100u);
  EXPECT_NE(first, next);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), first.begin()));
}

TEST(BatchDifferences, OnAllDataEqualTheDifferenceWithoutVariance) {
  Spring spring(120);
  Fixture from(&spring, 20, {2}), to(&spring, 20, {2.5});
  const double whole = ChangeOverAllData(from.inputs, to.theta, 2, &from.state)[0].change;
  const BatchDifferences all = CompareOnBatches(from.inputs, from.theta, to.theta, 6, 2)[0];
  EXPECT_NEAR(all.difference, whole, 1e-9);
  EXPECT_EQ(all.variance, 0);
  const BatchDifferences half = CompareOnBatches(from.inputs, from.theta, to.theta, 3, 2)[0];
  EXPECT_GT(half.variance, 0);
  EXPECT_NE(half.difference, whole);
}

// Over many steps: the mean is unbiased, and so is the estimate of its variance, in a finite population, too.
TEST(BatchDifferences, EstimateTheirOwnVarianceInAFinitePopulation) {
  Spring spring(120);
  Fixture from(&spring, 5, std::vector<float>(20000, 2)), to(&spring, 5, std::vector<float>(20000, 2.5));
  std::vector<double> squares, variances;
  const double whole = ChangeOverAllData(from.inputs, to.theta, 1, &from.state)[0].change;
  for (const BatchDifferences& seen : CompareOnBatches(from.inputs, from.theta, to.theta, 12, 1)) {
    squares.push_back((seen.difference - whole) * (seen.difference - whole));
    variances.push_back(seen.variance);
  }
  const auto square = testing::EstimateOf(squares), variance = testing::EstimateOf(variances);
  EXPECT_NEAR(square.value, variance.value, 4 * std::hypot(square.error, variance.error));
}

TEST(NoisyAcceptance, KolmogorovQuantilesMatchTheTables) {
  EXPECT_NEAR(KolmogorovQuantile(0.90), 1.22385, 1e-5);
  EXPECT_NEAR(KolmogorovQuantile(0.99), 1.62762, 1e-5);
  EXPECT_NEAR(KolmogorovQuantile(0.01), 0.44100, 1e-3);
  double variance = 0;  // variance of 2 K z: the logistic law's
  for (int i = 0; i < 20000; ++i) variance += 4 * std::pow(KolmogorovQuantile((i + 0.5) / 20000), 2) / 20000;
  EXPECT_NEAR(variance, 3.28987, 1e-3);
}

std::vector<Kernel> AllKernels() {
  using enum MinibatchMh::Rule;
  return {RandomWalk{},
          Mala{},
          Hmc{3},
          MinibatchMh{kPenalty, Proposal::kRandomWalk, 6},
          MinibatchMh{kPlainPenalty, Proposal::kLangevin, 6},
          MinibatchMh{kNone, Proposal::kLangevin, 2},
          MinibatchMh{kBarker, Proposal::kRandomWalk, 6}};
}

TEST(MetropolisKernels, NonFiniteProposalIsRejectedAndAffectsNoOther) {
  for (const Kernel& kernel : AllKernels()) {
    SCOPED_TRACE(kernel.index());
    Spring walled(60, 40), open(60);
    KernelRows rows(kernel, &walled, 10, 3, 9, 2e-4), alone(kernel, &open, 10, 1, 9, 2e-4);
    rows.chain(1).step_size = 1e20;  // every proposal is beyond the edge
    for (KernelRows* some : {&rows, &alone}) some->Set([](int64_t) { return 28; });
    for (int step = 0; step < 20; ++step) {
      const std::vector<StepInfo> info = rows.Step();
      alone.Step();
      EXPECT_TRUE(info[1].finite);
      EXPECT_FALSE(info[1].moved);
      EXPECT_EQ(rows.theta(1), 28);
      EXPECT_EQ(rows.theta(0), alone.theta(0));
    }
    EXPECT_NE(rows.theta(0), 28);
  }
}

TEST(MetropolisKernels, NonFiniteRowIsReportedAndAffectsNoOther) {
  for (const Kernel& kernel : AllKernels()) {
    SCOPED_TRACE(kernel.index());
    Spring walled(60, 40);
    KernelRows rows(kernel, &walled, 10, 3, 9, 2e-4);
    rows.Set([](int64_t row) { return row == 1 ? 50 : 28; });
    const std::vector<StepInfo> info = rows.Step();
    EXPECT_TRUE(info[0].finite);
    EXPECT_FALSE(info[1].finite);
    EXPECT_FALSE(info[1].moved);
    EXPECT_TRUE(info[2].finite);
  }
}

TEST(MetropolisKernels, RowAtRestIsLeftAsItIs) {
  for (const Kernel& kernel : AllKernels()) {
    SCOPED_TRACE(kernel.index());
    Spring spring(60);
    KernelRows rows(kernel, &spring, 10, 2, 9, 2e-4);
    rows.Set([](int64_t) { return 28; });
    rows.chain(1).active = false;
    for (int step = 0; step < 10; ++step) rows.Step();
    EXPECT_NE(rows.theta(0), 28);
    EXPECT_EQ(rows.theta(1), 28);
  }
}

// Each step after the first one computes only the losses of its proposal, with the bits of a chain that was resumed.
TEST(MetropolisKernels, OnAllDataKeepTheLossesOfTheirState) {
  constexpr int64_t kExamples = 300, kSteps = 20, kRows = 3;  // three parts of at most 128 examples
  const std::pair<Kernel, double> cases[] = {
      {RandomWalk{}, 0.1}, {RandomWalk{30}, 0.3}, {Mala{}, 0.0045}, {Hmc{3}, 0.08}};
  for (const auto& [kernel, step_size] : cases) {
    SCOPED_TRACE(kernel.index());
    Spring spring(kExamples), again(kExamples);
    KernelRows rows(kernel, &spring, 10, kRows, 9, step_size), resumed(kernel, &again, 10, kRows, 9, step_size);
    for (KernelRows* some : {&rows, &resumed}) some->Set([](int64_t) { return 148; });
    int64_t moves = 0;
    for (int64_t step = 0; step < kSteps; ++step) {
      resumed.chain(2).active = rows.chain(2).active = step >= 5;  // as a row that joins later
      if (step % 3 == 0) resumed.ForgetDerived();
      const std::vector<StepInfo> info = rows.Step(), expected = resumed.Step();
      for (int64_t row = 0; row < kRows; ++row) {
        EXPECT_EQ(info[row].energy, expected[row].energy) << step;
        EXPECT_EQ(rows.theta(row), resumed.theta(row)) << step;
      }
      moves += (info[0].moved ? 1 : 0) + (info[1].moved ? 1 : 0);
    }
    EXPECT_GT(moves, 0);
    EXPECT_LT(moves, 2 * kSteps);
    EXPECT_EQ(spring.num_losses(), (kSteps + 2) * kExamples) << "a pass more at the first step of a row";
    EXPECT_EQ(again.num_losses(), (kSteps + 8) * kExamples);
  }
}

TEST(MakeKernel, TakesEverySettingOfTheMinibatchSamplers) {
  using Rule = MinibatchMh::Rule;
  const auto expect = [](const SamplerSpec& spec, Rule rule, int64_t num_batches, double data_size) {
    const auto kernel = std::get<MinibatchMh>(*MakeKernel(spec));
    EXPECT_EQ(kernel.rule, rule) << spec.name();
    EXPECT_EQ(kernel.proposal, Proposal::kLangevin) << spec.name();
    EXPECT_EQ(kernel.num_batches, num_batches) << spec.name();
    EXPECT_EQ(kernel.data_size, data_size) << spec.name();
  };
  expect({PenaltyMhSpec{Proposal::kLangevin, 30, Penalty::kCorrected, 500}}, Rule::kPenalty, 30, 500);
  expect({PenaltyMhSpec{Proposal::kLangevin, 31, Penalty::kPlain}}, Rule::kPlainPenalty, 31, 0);
  expect({BatchedMhSpec{Proposal::kLangevin, 32}}, Rule::kNone, 32, 0);
  expect({BarkerMhSpec{Proposal::kLangevin, 33}}, Rule::kBarker, 33, 0);
}

// Every kept step is in one draw's weight, and the draws' weighted moments are those of the law.
TEST(MetropolisKernels, DrawsWeighTheKeptStepsTheyWereHeldFor) {
  constexpr int kChains = 400, kSteps = 300, kBurnIn = 40;
  auto plan = std::make_shared<JobPlan>();
  plan->job = "held-aaaaaa";
  plan->spec.name = "held";
  plan->spec.model.kind = GaussianPotential{1, 2};
  plan->spec.sampler.kind = RandomWalkSpec{};
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{1.7}};
  plan->spec.num_steps = kSteps;
  plan->spec.burn_in.steps = kBurnIn;
  plan->spec.chains = kChains;
  plan->spec.seed = 3;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  for (int chain = 0; chain < kChains; ++chain) ASSERT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  std::vector<double> weight(kChains), square(kChains);
  const auto take = [&](int chain, const Draw& draw) {
    weight[chain] += draw.weight;
    square[chain] += draw.weight * draw.theta[0][0] * draw.theta[0][0];
  };
  double accepted = 0;
  for (int step = 0; step < kSteps; ++step) {
    const auto reports = (*batch)->Step();
    ASSERT_TRUE(reports.ok()) << reports.status();
    for (const RowReport& report : *reports) {
      if (report.draw_due) take(report.chain, (*batch)->TakeDraw(report.chain));
      if (report.done) accepted += report.stats.metropolis->acceptance / kChains;
    }
  }
  for (int chain = 0; chain < kChains; ++chain) take(chain, (*batch)->GiveUpHeld(chain).value());
  EXPECT_THAT(weight, Each(kSteps - kBurnIn));
  for (double& value : square) value /= kSteps - kBurnIn;
  const auto moment = testing::EstimateOf(square);
  EXPECT_NEAR(moment.value, 0.5, 4 * moment.error);
  EXPECT_LT(moment.error, 0.006);
  EXPECT_NEAR(accepted, 0.442, 0.01);  // (2 / pi) atan(2 / s), s = 1.7 sqrt(2)
}

}  // namespace
}  // namespace chainfleet
