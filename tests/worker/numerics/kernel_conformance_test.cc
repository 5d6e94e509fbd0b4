// What every sampling kernel promises, through the public interface of a batch, on a tiny network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/domain/sweep_points.h"
#include "tests/support/chain_run.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/chain_batch.h"

namespace chainfleet {
namespace {

using ::testing::Each;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kSteps = 24, kExamples = 96;

// 24 steps in epochs of 6 on a softmax regression of 28x28 images.
std::shared_ptr<JobPlan> PlanFor(const SamplerSpec& sampler, const ResidentDataset& data) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "conformance-aaaaaa";
  JobSpec& spec = plan->spec;
  spec.name = "conformance";
  spec.model.kind = BuiltinModel{"softmax_regression", {}};
  // A layer whose inputs may fall out.
  if (std::holds_alternative<McDropoutSpec>(sampler.kind)) spec.model.kind = BuiltinModel{"mlp", {16}};
  // Few enough parameters for a matrix of them.
  if (std::holds_alternative<LaplaceSpec>(sampler.kind)) {
    spec.model.kind = LayeredModel{{{MaxPoolLayer{7}}, {LinearLayer{}}}};
  }
  spec.dataset = data.description().name;
  if (!std::holds_alternative<BsamSpec>(sampler.kind)) spec.prior.kind = GaussianPrior{5};
  spec.sampler = sampler;
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{2e-4}};
  spec.temperature = 0.5;
  spec.batch_size = 16;
  spec.num_steps = kSteps;
  spec.chains = 8;
  if (sampler.posterior_draws() == 0) spec.collect.every_steps = 3;
  if (std::holds_alternative<GradientUncertaintySpec>(sampler.kind)) {
    spec.burn_in.steps = 10;
    spec.collect.every_steps = 1;
  }
  if (!sampler.is_metropolis() && !sampler.passes_over_data()) spec.augmentation = {.crop_padding = 3, .flip = true};
  spec.seed = 11;
  plan->dataset = data.description();
  plan->normalisation = data.description().normalisation;
  return plan;
}

class KernelConformance : public ::testing::TestWithParam<SamplerSpec> {
 protected:
  std::unique_ptr<ChainBatch> Make(const std::shared_ptr<JobPlan>& plan) {
    auto batch = ChainBatch::Create(plan, data_, "cpu");
    EXPECT_TRUE(batch.ok()) << batch.status();
    return std::move(batch).value();
  }

  Draws RunAlone(const std::shared_ptr<JobPlan>& plan, int32_t index) {
    const auto batch = Make(plan);
    EXPECT_TRUE(batch->AddChain(index, std::nullopt).ok());
    return Run(*batch, index);
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
  for (const DrawTensors& draw : draws) {
    weight += draw.weight;
    EXPECT_THAT(draw.kinds, SizeIs(GetParam().has_anchor() ? 2 : 1));
    EXPECT_THAT(draw.kinds, Each(SizeIs(NumParameters(batch->parameters()))));
  }
  const auto planned = static_cast<double>(PlanSteps(plan_->spec, kExamples).NumDraws());
  const bool chooses = std::holds_alternative<GradientUncertaintySpec>(GetParam().kind);  // its draws itself
  EXPECT_TRUE(chooses ? weight < planned : weight == planned) << weight << " of " << planned;
}

TEST_P(KernelConformance, BatchOfChainsEqualsSingleChains) {
  for (const int32_t index : {0, 1, 4}) {
    const auto together = Make(plan_);
    for (const int32_t chain : {4, 0, 1}) ASSERT_TRUE(together->AddChain(chain, std::nullopt).ok());
    EXPECT_EQ(Flat(Run(*together, index)), Flat(RunAlone(plan_, index))) << index;
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
    alone->spec.chains = NumChains(plan_->spec);  // so that it has a chain of that index, and so of that key
    const auto single = Make(alone);
    ASSERT_TRUE(single->AddChain(index, std::nullopt).ok());
    EXPECT_EQ(Flat(Run(*together, index)), Flat(Run(*single, index)))
        << PointName(plan_->spec.sweep, PointOf(plan_->spec, index));
    EXPECT_EQ(together->SaveResumePoint(index), single->SaveResumePoint(index));
  }
}

TEST_P(KernelConformance, ResumeAnywhereEqualsNoInterruption) {
  const Draws whole = RunAlone(plan_, 1);
  // Up to the passes and draws that follow the last step of some.
  for (const int cut : {1, 5, 6, 13, kSteps - 1, kSteps + 2, kSteps + 8}) {
    const auto before = Make(plan_), after = Make(plan_);
    ASSERT_TRUE(before->AddChain(1, std::nullopt).ok());
    Draws draws = Run(*before, 1, cut);
    ASSERT_TRUE(after->AddChain(1, before->SaveResumePoint(1)).ok());
    for (DrawTensors& draw : Run(*after, 1)) draws.push_back(std::move(draw));
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
  for (const DrawTensors& draw : Run(*batch, 0)) {
    for (const auto& kind : draw.kinds) {
      for (const float value : kind) ASSERT_TRUE(std::isfinite(value));
    }
  }
  const auto next = batch->Step();
  ASSERT_TRUE(next.ok());
  if (!GetParam().is_metropolis()) {
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
    SCOPED_TRACE(likelihood.index());
    if (!Validate(plan_->spec).empty()) {
      const auto* laplace = std::get_if<LaplaceSpec>(&GetParam().kind);
      EXPECT_TRUE(laplace != nullptr && laplace->structure == CurvatureStructure::kKronecker &&
                  !ParametersOf(likelihood).empty());
      continue;
    }
    const auto alone = ChainBatch::Create(plan_, data, "cpu"), together = ChainBatch::Create(plan_, data, "cpu");
    ASSERT_TRUE(alone.ok() && together.ok()) << alone.status();
    ASSERT_TRUE((*alone)->AddChain(1, std::nullopt).ok());
    for (const int32_t chain : {4, 1}) ASSERT_TRUE((*together)->AddChain(chain, std::nullopt).ok());
    const Draws draws = Run(**alone, 1);
    EXPECT_FALSE(draws.empty());
    EXPECT_EQ(Flat(draws), Flat(Run(**together, 1)));
    EXPECT_EQ((*alone)->SaveResumePoint(1), (*together)->SaveResumePoint(1));
  }
}

std::string NameOf(const ::testing::TestParamInfo<SamplerSpec>& info) {
  const auto* sghmc = std::get_if<SghmcSpec>(&info.param.kind);
  return info.param.name() + (sghmc != nullptr && sghmc->scheme == SghmcScheme::kBaoa ? "_baoa" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Samplers, KernelConformance,
    ::testing::Values(
        SamplerSpec{SgldSpec{}}, SamplerSpec{EmcmcSpec{0.01, true}}, SamplerSpec{EmcmcGibbsSpec{0.01, 4}},
        SamplerSpec{SgdSpec{}}, SamplerSpec{SghmcSpec{}}, SamplerSpec{SghmcSpec{.scheme = SghmcScheme::kBaoa}},
        SamplerSpec{EntropySgdSpec{0.01, 4, 0.75}}, SamplerSpec{EntropySgldSpec{0.01, 4, 0.75}}, SamplerSpec{SamSpec{}},
        SamplerSpec{BsamSpec{.parts = 4}}, SamplerSpec{GradientUncertaintySpec{}},
        SamplerSpec{SwaSpec{.start_epoch = 2}}, SamplerSpec{SwagSpec{.start_epoch = 2, .max_rank = 3, .draws = 4}},
        SamplerSpec{SwagSpec{.start_epoch = 1, .diagonal = true, .draws = 4}}, SamplerSpec{RandomWalkSpec{}},
        SamplerSpec{MalaSpec{}}, SamplerSpec{HmcSpec{3}}, SamplerSpec{PenaltyMhSpec{.num_batches = 5}},
        SamplerSpec{PenaltyMhSpec{.proposal = Proposal::kLangevin, .num_batches = 5}},
        SamplerSpec{BatchedMhSpec{.num_batches = 2}}, SamplerSpec{TemperedMhSpec{48}},
        SamplerSpec{BarkerMhSpec{.num_batches = 5}}, SamplerSpec{McDropoutSpec{.rate = 0.2, .draws = 4}},
        SamplerSpec{LaplaceSpec{.draws = 4}},
        SamplerSpec{LaplaceSpec{.structure = CurvatureStructure::kDiagonal, .draws = 4}},
        SamplerSpec{LaplaceSpec{.structure = CurvatureStructure::kFull, .draws = 4}}),
    [](const auto& info) { return NameOf(info) + "_" + std::to_string(info.index); });

// The samplers whose only randomness is scaled by the temperature.
class NoiseOfKernel : public KernelConformance {};

TEST_P(NoiseOfKernel, ZeroTemperatureLeavesOnlyTheDrift) {
  plan_->spec.minibatches = Minibatches::kReshuffle;
  plan_->spec.batch_size = kExamples;  // every batch is the whole data set: keys choose only its order and the noise
  plan_->spec.augmentation = {};
  plan_->spec.temperature = 0;
  const auto start = Make(plan_);
  ASSERT_TRUE(start->AddChain(0, std::nullopt).ok());
  const auto run_from_start_of_0 = [&](uint64_t seed) {
    auto plan = std::make_shared<JobPlan>(*plan_);
    plan->spec.seed = seed;
    const auto batch = Make(plan);
    EXPECT_TRUE(batch->AddChain(0, start->SaveResumePoint(0)).ok());
    return Flat(Run(*batch, 0));
  };
  const std::vector<float> a = run_from_start_of_0(1), b = run_from_start_of_0(2);
  ASSERT_EQ(a.size(), b.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
  }
  EXPECT_LT(worst, 1e-5 * largest);  // another order of summation
  plan_->spec.temperature = 0.5;
  EXPECT_NE(run_from_start_of_0(1), a);
}

INSTANTIATE_TEST_SUITE_P(Samplers, NoiseOfKernel,
                         ::testing::Values(SamplerSpec{SgldSpec{}}, SamplerSpec{EmcmcSpec{0.01}},
                                           SamplerSpec{EmcmcGibbsSpec{0.01, 4}}, SamplerSpec{SghmcSpec{}},
                                           SamplerSpec{SghmcSpec{.scheme = SghmcScheme::kBaoa}},
                                           SamplerSpec{EntropySgdSpec{0.01, 4, 0.75}},
                                           SamplerSpec{LaplaceSpec{.draws = 4}}),
                         [](const auto& info) { return NameOf(info) + "_" + std::to_string(info.index); });

}  // namespace
}  // namespace chainfleet
