// Tests the contract of every sampling kernel through the public interface of a batch, on a tiny network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/domain/chain_memory.h"
#include "core/domain/sweep_points.h"
#include "tests/support/chain_run.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/samplers/kernel.h"

namespace chainfleet {
namespace {

using ::testing::Each;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kSteps = 24, kExamples = 96;

// A sampler, and its own schedule if it needs one.
struct Case {
  SamplerSpec sampler;
  std::optional<ScheduleKind> schedule = std::nullopt;
};

// 24 steps in epochs of 6 on a softmax regression of 28x28 images.
std::shared_ptr<JobPlan> PlanFor(const Case& of, const ResidentDataset& data) {
  const SamplerSpec& sampler = of.sampler;
  auto plan = std::make_shared<JobPlan>();
  plan->job = "conformance-aaaaaa";
  JobSpec& spec = plan->spec;
  spec.name = "conformance";
  spec.model.kind = BuiltinModel{"softmax_regression", {}};
  // A layer whose inputs may be dropped.
  if (std::holds_alternative<McDropoutSpec>(sampler.kind)) spec.model.kind = BuiltinModel{"mlp", {16}};
  // Few enough parameters for a matrix of them.
  if (std::holds_alternative<LaplaceSpec>(sampler.kind)) {
    spec.model.kind = LayeredModel{{{MaxPoolLayer{7}}, {LinearLayer{}}}};
  }
  spec.dataset = data.description().name;
  if (!std::holds_alternative<BsamSpec>(sampler.kind)) spec.prior.kind = GaussianPrior{5};
  spec.sampler = sampler;
  spec.schedule = {StepScale::kStepSize, of.schedule.value_or(ConstantSchedule{2e-4})};
  if (sampler.is_microcanonical()) spec.schedule.scale = StepScale::kLearningRate;
  spec.temperature = 0.5;
  spec.batch_size = 16;
  spec.num_steps = kSteps;
  spec.chains = 8;
  if (sampler.posterior_draws() == 0) spec.collect.every_steps = 3;
  if (std::holds_alternative<GradientUncertaintySpec>(sampler.kind)) {
    spec.burn_in.steps = 10;
    spec.collect.every_steps = 1;
  }
  if (!sampler.is_metropolis() && !sampler.passes_over_data() && !std::holds_alternative<MileSpec>(sampler.kind))
    spec.augmentation = {.crop_padding = 3, .flip = true};
  spec.seed = 11;
  plan->dataset = data.description();
  plan->normalisation = data.description().normalisation;
  return plan;
}

class KernelConformance : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<ChainBatch> Make(const std::shared_ptr<JobPlan>& plan) {
    auto batch = ChainBatch::Create(plan, data_, "cpu");
    EXPECT_TRUE(batch.ok()) << batch.status();
    return std::move(batch).value();
  }

  Draws RunAlone(const std::shared_ptr<JobPlan>& plan, int32_t index) {
    const auto batch = Make(plan);
    EXPECT_TRUE(batch->AddChain(index, std::nullopt).ok());
    return RunChain(*batch, index);
  }

  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(kExamples);
  const std::shared_ptr<JobPlan> plan_ = PlanFor(GetParam(), *data_);
};

TEST_P(KernelConformance, SameKeyGivesTheSameDrawsAnotherKeyOthers) {
  const Draws draws = RunAlone(plan_, 2);
  ASSERT_FALSE(draws.empty());
  EXPECT_EQ(Flat(draws), Flat(RunAlone(plan_, 2)));
  EXPECT_NE(Flat(draws), Flat(RunAlone(plan_, 3)));
}

TEST_P(KernelConformance, DrawsHaveTheShapeOfThetaAndWeighAllKeptSteps) {
  const Draws draws = RunAlone(plan_, 0);
  const auto batch = Make(plan_);
  double weight = 0;
  for (const Draw& draw : draws) {
    weight += draw.weight;
    EXPECT_THAT(draw.theta, SizeIs(GetParam().sampler.has_anchor() ? 2 : 1));
    EXPECT_THAT(draw.theta, Each(SizeIs(NumParameters(batch->parameters()))));
  }
  const auto planned = static_cast<double>(PlanSteps(plan_->spec, kExamples).NumDraws());
  const bool chooses = std::holds_alternative<GradientUncertaintySpec>(GetParam().sampler.kind);  // chooses draws
  EXPECT_TRUE(chooses ? weight < planned : weight == planned) << weight << " of " << planned;
}

TEST_P(KernelConformance, HasNoMoreStateThanTheServerPlansFor) {
  EXPECT_LE(static_cast<int64_t>(ArenaNames(*MakeKernel(GetParam().sampler)).size()), StateCopies(GetParam().sampler));
}

TEST_P(KernelConformance, BatchOfChainsEqualsSingleChains) {
  for (const int32_t index : {0, 1, 4}) {
    const auto together = Make(plan_);
    for (const int32_t chain : {4, 0, 1}) ASSERT_TRUE(together->AddChain(chain, std::nullopt).ok());
    EXPECT_EQ(Flat(RunChain(*together, index)), Flat(RunAlone(plan_, index))) << index;
  }
}

// Two values of each number that the job may sweep.
SweepSpec WholeSweep(const JobSpec& job) {
  const SweepSpec all = {.step_size = {2e-4, 1e-4},
                         .temperature = {0.5, 0.02},
                         .prior_precision = {5, 300},
                         .eta = {0.01, 0.2},
                         .friction = {0.1, 0.6},
                         .rho = {0.05, 2}};
  SweepSpec some;
  const std::vector<SweepAxis> axes = AxesOf(all);
  SweepSpec::Fields(some, [&](const std::string& name, std::vector<double>& values) {
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const SweepAxis& a) { return a.name == name; });
    if (axis == axes.end()) return;
    JobSpec one = job;
    SweepSpec::Fields(one.sweep, [&](const std::string& field, std::vector<double>& list) {
      if (field == name) list = axis->values;
    });
    if (Validate(one).empty()) values = axis->values;
  });
  return some;
}

TEST_P(KernelConformance, BatchOfASweepEqualsTheJobsOfItsPoints) {
  const JobSpec job = plan_->spec;
  plan_->spec.chains = 2;
  plan_->spec.sweep = WholeSweep(job);
  const int32_t points = NumPoints(plan_->spec.sweep);
  ASSERT_GE(points, 4);
  const std::vector<int32_t> chains = {2 * points - 1, 0, points, 5};
  for (const int32_t index : chains) {
    const auto together = Make(plan_);
    for (const int32_t chain : chains) ASSERT_TRUE(together->AddChain(chain, std::nullopt).ok());
    auto alone = std::make_shared<JobPlan>(*plan_);
    alone->spec = SpecAt(plan_->spec, PointOf(plan_->spec, index));
    alone->spec.chains = NumChains(plan_->spec);  // so that it has a chain of that index and key
    const auto single = Make(alone);
    ASSERT_TRUE(single->AddChain(index, std::nullopt).ok());
    EXPECT_EQ(Flat(RunChain(*together, index)), Flat(RunChain(*single, index)))
        << PointName(plan_->spec.sweep, PointOf(plan_->spec, index));
    EXPECT_EQ(together->SaveResumePoint(index), single->SaveResumePoint(index));
  }
}

TEST_P(KernelConformance, ResumeAnywhereEqualsNoInterruption) {
  const Draws whole = RunAlone(plan_, 1);
  // Runs through the passes and draws that some samplers make after the last step.
  for (const int cut : {1, 5, 6, 13, kSteps - 1, kSteps + 2, kSteps + 8}) {
    const auto before = Make(plan_), after = Make(plan_);
    ASSERT_TRUE(before->AddChain(1, std::nullopt).ok());
    Draws draws = RunChain(*before, 1, cut);
    ASSERT_TRUE(after->AddChain(1, before->SaveResumePoint(1)).ok());
    for (Draw& draw : RunChain(*after, 1)) draws.push_back(std::move(draw));
    EXPECT_EQ(Flat(draws), Flat(whole)) << "cut after " << cut;
  }
}

TEST_P(KernelConformance, SeesAugmentedImagesWhereAJobMayAskForThem) {
  if (!plan_->spec.augmentation.any()) {
    plan_->spec.augmentation.flip = true;
    const auto violations = FieldViolationsOf(ChainBatch::Create(plan_, data_, "cpu").status());
    ASSERT_EQ(violations.size(), 1u);
    EXPECT_EQ(violations[0].path, "augmentation");
    return;
  }
  const Draws changed = RunAlone(plan_, 0);
  plan_->spec.augmentation = {};
  EXPECT_NE(Flat(changed), Flat(RunAlone(plan_, 0)));
}

TEST_P(KernelConformance, DivergingSettingsEndWithoutANanDraw) {
  plan_->spec.schedule.kind = ConstantSchedule{1e30};
  const auto batch = Make(plan_);
  ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
  for (const Draw& draw : RunChain(*batch, 0)) {
    for (const auto& kind : draw.theta) {
      for (const float value : kind) ASSERT_TRUE(std::isfinite(value));
    }
  }
  const auto next = batch->Step();
  ASSERT_TRUE(next.ok());
  if (!GetParam().sampler.is_metropolis()) {
    ASSERT_FALSE(next->empty()) << "the chain came to its end";
    EXPECT_FALSE(next->front().finite);
  }
}

TEST_P(KernelConformance, EveryLikelihoodRunsAloneAsInABatchOrIsRefused) {
  for (const LikelihoodKind& likelihood :
       {LikelihoodKind(BernoulliLikelihood()), LikelihoodKind(GaussianLikelihood{.variance = 0.5}),
        LikelihoodKind(GaussianLikelihood{.variance = {}, .learned = true}),
        LikelihoodKind(HeteroscedasticGaussianLikelihood())}) {
    const bool labels = std::holds_alternative<BernoulliLikelihood>(likelihood);
    const auto data = Resident(MakeTable(kExamples, 3, labels));
    plan_->dataset = data->description();
    plan_->normalisation = data->description().normalisation;
    plan_->spec.model = {BuiltinModel{"mlp", {4}}, likelihood};
    plan_->spec.augmentation = {};
    SCOPED_TRACE(likelihood.index());
    if (!Validate(plan_->spec).empty()) {
      const auto* laplace = std::get_if<LaplaceSpec>(&GetParam().sampler.kind);
      EXPECT_TRUE(laplace != nullptr && laplace->structure == CurvatureStructure::kKronecker &&
                  !ParametersOf(likelihood).empty());
      continue;
    }
    const auto alone = ChainBatch::Create(plan_, data, "cpu"), together = ChainBatch::Create(plan_, data, "cpu");
    ASSERT_TRUE(alone.ok() && together.ok()) << alone.status();
    ASSERT_TRUE((*alone)->AddChain(1, std::nullopt).ok());
    for (const int32_t chain : {4, 1}) ASSERT_TRUE((*together)->AddChain(chain, std::nullopt).ok());
    const Draws draws = RunChain(**alone, 1);
    const bool chooses = std::holds_alternative<GradientUncertaintySpec>(GetParam().sampler.kind);  // chooses draws
    EXPECT_TRUE(chooses || !draws.empty());
    EXPECT_EQ(Flat(draws), Flat(RunChain(**together, 1)));
    EXPECT_EQ((*alone)->SaveResumePoint(1), (*together)->SaveResumePoint(1));
  }
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  const auto* sghmc = std::get_if<SghmcSpec>(&info.param.sampler.kind);
  return info.param.sampler.name() + (sghmc != nullptr && sghmc->scheme == SghmcScheme::kBaoa ? "_baoa" : "") +
         (info.param.schedule ? "_cyclical_" : "_") + std::to_string(info.index);
}

constexpr CyclicalSchedule kCyclical{2e-4, 1e-6, 2};
// All phases in kSteps steps: b, the length of the tuner's sums, is 1.
const SamplerSpec kShortMile{MileSpec{.optimizer_steps = 3, .validation_fraction = 0.25, .warm_up_steps = 12}};
const SamplerSpec kShortSmile{SmileSpec{.optimizer_steps = 3, .warm_up_steps = 10}};

INSTANTIATE_TEST_SUITE_P(
    Samplers, KernelConformance,
    ::testing::Values(
        Case{{SgldSpec{}}}, Case{{SgldSpec{.noise_free_fraction = 0.5}}, kCyclical}, Case{{EmcmcSpec{0.01, true}}},
        Case{{EmcmcSpec{0.01, false, 0.5}}, kCyclical}, Case{{EmcmcGibbsSpec{0.01, 4}}}, Case{{SgdSpec{}}},
        Case{{SghmcSpec{}}}, Case{{SghmcSpec{.noise_free_fraction = 0.5}}, kCyclical},
        Case{{SghmcSpec{.scheme = SghmcScheme::kBaoa}}}, Case{{EntropySgdSpec{0.01, 4, 0.75}}},
        Case{{EntropySgldSpec{0.01, 4, 0.75}}}, Case{{SamSpec{}}}, Case{{BsamSpec{.parts = 4}}},
        Case{{GradientUncertaintySpec{}}}, Case{{GradientUncertaintySpec{.threshold = 0}}},
        Case{{SwaSpec{.start_epoch = 2}}}, Case{{SwagSpec{.start_epoch = 2, .max_rank = 3, .draws = 4}}},
        Case{{SwagSpec{.start_epoch = 1, .diagonal = true, .draws = 4}}}, Case{{RandomWalkSpec{}}}, Case{{MalaSpec{}}},
        Case{{HmcSpec{3}}}, Case{{PenaltyMhSpec{.num_batches = 5}}},
        Case{{PenaltyMhSpec{.num_batches = 5, .penalty = Penalty::kPlain}}},
        Case{{PenaltyMhSpec{.proposal = Proposal::kLangevin, .num_batches = 5}}},
        Case{{BatchedMhSpec{.num_batches = 2}}},
        Case{{BatchedMhSpec{.proposal = Proposal::kLangevin, .num_batches = 2}}}, Case{{TemperedMhSpec{48}}},
        Case{{BarkerMhSpec{.num_batches = 5}}}, Case{{BarkerMhSpec{.proposal = Proposal::kLangevin, .num_batches = 5}}},
        Case{{McDropoutSpec{.rate = 0.2, .draws = 4}}}, Case{{LaplaceSpec{.draws = 4}}},
        Case{{LaplaceSpec{.structure = CurvatureStructure::kDiagonal, .draws = 4}}},
        Case{{LaplaceSpec{.structure = CurvatureStructure::kFull, .draws = 4}}},
        Case{{MileSpec{.optimizer_steps = 4, .descent = Optimizer::kHeavyBall, .patience = 1, .warm_up_steps = 0}}},
        Case{kShortMile}, Case{kShortSmile},
        Case{{SmileSpec{.optimizer_steps = 2,
                        .descent = Optimizer::kHeavyBall,
                        .warm_up_steps = 0,
                        .precondition = false,
                        .decoherence_length = 1}}},
        Case{{SgdSpec{.optimizer = Optimizer::kAdamw}}, ConstantSchedule{1e-5}},
        Case{{SwagSpec{.start_epoch = 2, .max_rank = 3, .draws = 4, .optimizer = Optimizer::kAdamw}},
             ConstantSchedule{1e-5}},
        Case{{McDropoutSpec{.rate = 0.2, .draws = 4, .optimizer = Optimizer::kAdamw}}, ConstantSchedule{1e-5}},
        Case{{LaplaceSpec{.draws = 4, .optimizer = Optimizer::kAdamw}}, ConstantSchedule{1e-5}}),
    NameOf);

// Temperature 0 on all data: two seeds, from one start.
class NoiseOfKernel : public KernelConformance {
 protected:
  NoiseOfKernel() {
    plan_->spec.minibatches = Minibatches::kReshuffle;
    plan_->spec.batch_size = kExamples;  // keys choose only the order of a batch, and the noise
    plan_->spec.augmentation = {};
    plan_->spec.temperature = 0;
    start_ = Make(plan_);
    EXPECT_TRUE(start_->AddChain(0, std::nullopt).ok());
  }

  std::vector<float> RunFromStartOf0(uint64_t seed) {
    auto plan = std::make_shared<JobPlan>(*plan_);
    plan->spec.seed = seed;
    const auto batch = Make(plan);
    EXPECT_TRUE(batch->AddChain(0, start_->SaveResumePoint(0)).ok());
    return Flat(RunChain(*batch, 0));
  }

  std::unique_ptr<ChainBatch> start_;
};

// Returns whether two runs differ only by another order of summation.
bool AreOneDrift(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  double worst = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
  }
  return worst < 1e-5 * largest;
}

class NoiseOfTheTemperature : public NoiseOfKernel {};

TEST_P(NoiseOfTheTemperature, EndsAtZeroAndLeavesOnlyTheDrift) {
  const std::vector<float> cold = RunFromStartOf0(1);
  EXPECT_TRUE(AreOneDrift(cold, RunFromStartOf0(2)));
  plan_->spec.temperature = 0.5;
  EXPECT_FALSE(AreOneDrift(cold, RunFromStartOf0(1)));
}

INSTANTIATE_TEST_SUITE_P(
    Samplers, NoiseOfTheTemperature,
    ::testing::Values(Case{{SgldSpec{}}}, Case{{EmcmcSpec{0.01}}}, Case{{EmcmcSpec{0.01, true}}},
                      Case{{EmcmcGibbsSpec{0.01, 4}}}, Case{{SghmcSpec{}}},
                      Case{{SghmcSpec{.scheme = SghmcScheme::kBaoa}}}, Case{{EntropySgdSpec{0.01, 4, 0.75}}},
                      Case{{GradientUncertaintySpec{.threshold = 1e6}}},  // every step is one with noise
                      Case{{MalaSpec{}}}, Case{{HmcSpec{3}}}, Case{{LaplaceSpec{.draws = 4}}}),
    NameOf);

// Optimisers have no noise at any temperature.
class NoNoise : public NoiseOfKernel {};

TEST_P(NoNoise, IsInADescentAtAnyTemperature) {
  const std::vector<float> cold = RunFromStartOf0(1);
  plan_->spec.temperature = 0.5;
  EXPECT_TRUE(AreOneDrift(cold, RunFromStartOf0(2)));
}

INSTANTIATE_TEST_SUITE_P(Samplers, NoNoise,
                         ::testing::Values(Case{{SgdSpec{}}}, Case{{SamSpec{}}}, Case{{SwaSpec{.start_epoch = 2}}}),
                         NameOf);

// Noise that T does not scale: entropy_sgld's noise on theta is sqrt(h eta) by definition; bsam and SWAG have Gaussians
// of their own; mc_dropout's noise is its choice of units. Random-walk proposals have the step size as their width, and
// T enters only their acceptance. Kernels on mini-batches also have the noise of their choice of examples; for
// penalty_mh, batched_mh and barker_mh it vanishes only if the M disjoint batches of a step are all data.
class NoiseOfItsOwn : public NoiseOfKernel {};

TEST_P(NoiseOfItsOwn, IsThereAtTemperatureZero) { EXPECT_FALSE(AreOneDrift(RunFromStartOf0(1), RunFromStartOf0(2))); }

INSTANTIATE_TEST_SUITE_P(Samplers, NoiseOfItsOwn,
                         ::testing::Values(Case{{EntropySgldSpec{0.01, 4, 0.75}}}, Case{{BsamSpec{.parts = 4}}},
                                           Case{{SwagSpec{.start_epoch = 2, .max_rank = 3, .draws = 4}}},
                                           Case{{McDropoutSpec{.rate = 0.2, .draws = 4}}}, Case{{RandomWalkSpec{}}},
                                           Case{{TemperedMhSpec{48}}}),
                         NameOf);

}  // namespace
}  // namespace chainfleet
