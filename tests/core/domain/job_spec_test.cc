#include "core/domain/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/base/content_limits.h"
#include "core/base/limits.h"
#include "core/domain/chain_trace.h"
#include "tests/core/domain/invalid_paths.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The quickstart's job: 60,000 examples, batches of 128, 12 epochs in 4 cycles.
JobSpec FashionJob() {
  JobSpec spec;
  spec.name = "fashion-emcmc";
  spec.model.kind = BuiltinModel{"lenet5", {}};
  spec.dataset = "fashion-mnist";
  spec.prior.kind = GaussianPrior{25};
  spec.sampler.kind = EmcmcSpec{};
  spec.schedule.kind = CyclicalSchedule{.initial = 0.2, .cycles = 4};
  spec.temperature = 1e-4;
  spec.num_epochs = 12;
  spec.burn_in.cycles = 2;
  spec.chains = 4;
  spec.collect.last_epochs_of_cycle = 1;
  return spec;
}

TEST(JobSpec, TheQuickstartJobIsValid) {
  EXPECT_THAT(Validate(FashionJob()), IsEmpty());
  EXPECT_THAT(ValidateForData(FashionJob(), 60000), IsEmpty());
}

TEST(JobSpec, PlansStepsByEpochsAndCycles) {
  const StepPlan plan = PlanSteps(FashionJob(), 60000);
  EXPECT_EQ(plan.steps_per_epoch, 468);
  EXPECT_EQ(plan.total_steps, 12 * 468);
  EXPECT_EQ(plan.steps_per_cycle, 3 * 468);
  EXPECT_EQ(plan.burn_in_steps, 6 * 468);
  EXPECT_EQ(plan.NumDraws(), 2);  // the last epoch of cycles 3 and 4
  EXPECT_TRUE(plan.CollectsAfter(9 * 468));
  EXPECT_TRUE(plan.CollectsAfter(12 * 468));
  EXPECT_FALSE(plan.CollectsAfter(8 * 468)) << "not the last epoch of its cycle";
  EXPECT_FALSE(plan.CollectsAfter(9 * 468 - 1)) << "inside an epoch";
  EXPECT_FALSE(plan.CollectsAfter(6 * 468)) << "the last step of burn-in";
}

TEST(JobSpec, NamesTheWrongEndOfACycleAlone) {
  const auto paths = [](double initial, double final) {
    JobSpec spec = FashionJob();
    spec.schedule.kind = CyclicalSchedule{.initial = initial, .final = final, .cycles = 4};
    return InvalidPaths(spec);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {-1.0, 0.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(paths(bad, 0.1), ElementsAre("learning_rate.cyclical.initial")) << bad;
  }
  for (const double bad : {-1.0, 0.3, infinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(paths(0.2, bad), ElementsAre("learning_rate.cyclical.final")) << bad;
  }
  EXPECT_THAT(paths(0.2, 0.2), IsEmpty());
}

TEST(JobSpec, ThinsBySteps) {
  JobSpec spec = FashionJob();
  spec.num_epochs.reset();
  spec.num_steps = 100;
  spec.schedule.kind = ConstantSchedule{0.1};
  spec.burn_in = {.steps = 10};
  spec.collect = {.every_steps = 7};
  const StepPlan plan = PlanSteps(spec, 60000);
  int64_t draws = 0;
  for (int64_t step = 1; step <= 100; ++step) draws += plan.CollectsAfter(step) ? 1 : 0;
  EXPECT_EQ(draws, 13);  // 14, 21, ..., 98
  EXPECT_EQ(plan.NumDraws(), draws);
}

// A window of traces holds the steps of a whole run from which draws may be collected.
TEST(StepPlan, TracesUpToAThousandStepsOfTheWindows) {
  JobSpec spec = FashionJob();
  spec.num_epochs = 60;
  for (const int64_t last_epochs : {1, 2, 5, 7}) {
    spec.collect.last_epochs_of_cycle = last_epochs;
    const StepPlan plan = PlanSteps(spec, 60000);
    int64_t steps = 0;
    for (int64_t step = 0; step <= plan.total_steps + 1; ++step) {
      if (!plan.TracesAfter(step)) continue;
      ++steps;
      EXPECT_GT(step, plan.burn_in_steps);
      EXPECT_GT((step - 1) % plan.steps_per_cycle, plan.steps_per_cycle - 1 - 468 * last_epochs);
    }
    EXPECT_LE(steps, kTraceWindow);
    EXPECT_GT(steps, kTraceWindow * 9 / 10) << last_epochs;
  }
}

TEST(StepPlan, TracesOfAShortRunOneInSixteenStepsUnlessARuleNeedsMore) {
  JobSpec spec = FashionJob();
  const auto traced = [&](int64_t steps) {
    spec.num_epochs.reset();
    spec.num_steps = steps;
    spec.schedule.kind = ConstantSchedule{0.1};
    spec.burn_in = {.steps = steps / 2};
    spec.collect = {.every_steps = 1};
    const StepPlan plan = PlanSteps(spec, 60000);
    int64_t count = 0;
    for (int64_t step = 1; step <= steps; ++step) count += plan.TracesAfter(step) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(traced(20), 1);
  EXPECT_EQ(traced(60), 3);
  EXPECT_EQ(traced(800), 50);
  EXPECT_EQ(traced(6400), 400);
  EXPECT_EQ(traced(64000), 1000);
  spec.until = {.ess_above = 50};
  EXPECT_EQ(traced(60), 30) << "there are no more";
  EXPECT_EQ(traced(800), 100);
  EXPECT_GE(traced(850), kFewestValuesToStop);
  EXPECT_EQ(traced(6400), 400);
  EXPECT_EQ(traced(640000), 20000) << "the rule may hold long before the bound";
}

TEST(StepPlan, TracesAsOftenAsTheJobSays) {
  JobSpec spec = FashionJob();
  spec.trace_every = 100;
  EXPECT_EQ(PlanSteps(spec, 60000).trace_every, 100);
  EXPECT_TRUE(PlanSteps(spec, 60000).TracesAfter(9 * 468 - 12));
  EXPECT_FALSE(PlanSteps(spec, 60000).TracesAfter(9 * 468));
}

TEST(StepPlan, TracesNoSamplesOfWhatTrainingLeft) {
  JobSpec spec = FashionJob();
  spec.sampler.kind = SwagSpec{};
  const StepPlan plan = PlanSteps(spec, 60000);
  for (int64_t step = 0; step <= plan.total_steps; ++step) ASSERT_FALSE(plan.TracesAfter(step)) << step;
}

TEST(StepPlan, CountsTheDrawsItCollects) {
  for (const int64_t total : {1, 23, 24, 25, 100}) {
    for (const int64_t cycle : {1, 7, 24}) {
      for (const int64_t every : {1, 3, 8}) {
        for (const int64_t window : {1, 3, 24}) {
          for (const int64_t burn_in : {0, 5, 24}) {
            const StepPlan plan{.total_steps = total,
                                .steps_per_cycle = cycle,
                                .burn_in_steps = burn_in,
                                .collect_every = every,
                                .collect_window = std::min(window, cycle)};
            int64_t draws = 0;
            for (int64_t step = 0; step <= total + 1; ++step) draws += plan.CollectsAfter(step) ? 1 : 0;
            EXPECT_EQ(plan.NumDraws(), draws)
                << total << " " << cycle << " " << every << " " << window << " " << burn_in;
          }
        }
      }
    }
  }
}

TEST(StepPlan, CountsALongRunAtOnce) {
  JobSpec spec = FashionJob();
  spec.num_epochs.reset();
  spec.num_steps = limits::kMaxStepsPerChain;
  spec.collect = {};
  EXPECT_THAT(Validate(spec), IsEmpty());
  EXPECT_EQ(PlanSteps(spec, 60000).NumDraws(), limits::kMaxStepsPerChain / 2);
}

TEST(JobSpec, ALengthIsNoLearningRate) {
  const std::vector<SamplerKind> lengths = {RandomWalkSpec{}, HmcSpec{},       TemperedMhSpec{100},
                                            PenaltyMhSpec{},  BatchedMhSpec{}, BarkerMhSpec{}};
  JobSpec spec = FashionJob();
  spec.collect = {.every_steps = 10};
  for (const SamplerKind& sampler : lengths) {
    spec.sampler.kind = sampler;
    spec.schedule.scale = StepScale::kLearningRate;
    EXPECT_THAT(InvalidPaths(spec), ::testing::ElementsAre("learning_rate")) << spec.sampler.name();
    spec.schedule.scale = StepScale::kStepSize;
    EXPECT_THAT(InvalidPaths(spec), IsEmpty()) << spec.sampler.name();
  }
  spec.schedule.scale = StepScale::kLearningRate;
  for (const SamplerKind& sampler :
       {SamplerKind(MalaSpec{}), SamplerKind(PenaltyMhSpec{.proposal = Proposal::kLangevin})}) {
    spec.sampler.kind = sampler;
    EXPECT_THAT(InvalidPaths(spec), IsEmpty()) << spec.sampler.name();
  }
}

TEST(JobSpec, TheCorrectedNoiseFitsTheLargestStepOfTheRun) {
  JobSpec spec = FashionJob();
  spec.sampler.kind = SgldSpec{.gradient_noise = 10};
  spec.temperature = 0.01;
  spec.burn_in = {};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.001}};
  spec.collect = {.every_steps = 10};
  const std::vector<ScheduleKind> calm = {ConstantSchedule{0.002},           LinearSchedule{0.001, 0.002},
                                          ExponentialSchedule{0.001, 0.002}, StepSchedule{0.001, 2, 0.5},
                                          CyclicalSchedule{0.002, 0, 1},     SwagSchedule{0.001, 0.002, 1},
                                          PolynomialSchedule{0.002, 10, 1}};
  const std::vector<ScheduleKind> hot = {ConstantSchedule{0.0021},           LinearSchedule{0.001, 0.0021},
                                         ExponentialSchedule{0.001, 0.0021}, StepSchedule{0.001, 2.1, 0.5},
                                         CyclicalSchedule{0.0021, 0, 1},     SwagSchedule{0.001, 0.0021, 1},
                                         PolynomialSchedule{0.0021, 10, 1}};
  for (size_t i = 0; i < hot.size(); ++i) {
    spec.schedule.kind = calm[i];
    EXPECT_THAT(ValidateForData(spec, 60000), IsEmpty()) << i;
    spec.schedule.kind = hot[i];
    const auto refused = ValidateForData(spec, 60000);
    ASSERT_EQ(refused.size(), 1u) << i;
    EXPECT_EQ(refused[0].path, "sampler.sgld.gradient_noise");
  }
}

TEST(JobSpec, EveryWrongFieldIsNamedAtItsPath) {
  const auto paths_after = [](auto change) {
    JobSpec spec = FashionJob();
    change(spec);
    return InvalidPaths(spec);
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(paths_after([](JobSpec& s) { s.name = "No Good"; }), ElementsAre("name"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.dataset = ""; }), ElementsAre("dataset.name"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.prior.kind = GaussianPrior{-1}; }),
              ElementsAre("prior.gaussian.precision"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.sampler.kind = EmcmcSpec{0}; }), ElementsAre("sampler.emcmc.eta"));
  EXPECT_THAT(paths_after([](JobSpec& s) {
                s.schedule.kind = ConstantSchedule{-0.1};
                s.burn_in = {};
              }),
              ElementsAre("learning_rate.constant"));
  EXPECT_THAT(paths_after([](JobSpec& s) {
                s.schedule = {StepScale::kStepSize, ConstantSchedule{0}};
                s.burn_in = {};
              }),
              ElementsAre("step_size.constant"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.temperature = -1; }), ElementsAre("temperature"));
  EXPECT_THAT(paths_after([](JobSpec& s) {
                s.sampler.kind = PenaltyMhSpec{};
                s.schedule.scale = StepScale::kStepSize;
                s.temperature = 0;
              }),
              ElementsAre("temperature"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.batch_size = 0; }), ElementsAre("batch_size"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.num_steps = 10; }), ElementsAre("num_epochs"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.num_epochs = 13; }), ElementsAre("num_epochs")) << "13 epochs in 4 cycles";
  EXPECT_THAT(paths_after([](JobSpec& s) { s.burn_in.cycles = 4; }), ElementsAre("burn_in.cycles"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.burn_in.steps = 3; }), ElementsAre("burn_in"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.collect.every_steps = 3; }), ElementsAre("collect"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.num_epochs = INT64_MAX / 4 * 4; }), ElementsAre("num_epochs"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.chains = 0; }), ElementsAre("chains"));
  EXPECT_THAT(paths_after([](JobSpec& s) { s.collect.last_epochs_of_cycle = 4; }),
              ElementsAre("collect.last_epochs_of_cycle"));
  EXPECT_THAT(paths_after([](JobSpec& s) {
                s.sampler.kind = SgldSpec{};
                s.collect.kinds = {DrawKind::kTheta, DrawKind::kThetaA};
              }),
              ElementsAre("collect.kinds[1]"));
}

TEST(JobSpec, NoMoreChainsAreEnoughThanThereAre) {
  JobSpec spec = FashionJob();
  spec.scheduling.success_chains = spec.chains;
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.scheduling.success_chains = spec.chains + 1;
  EXPECT_THAT(InvalidPaths(spec), ::testing::ElementsAre("scheduling.success_chains"));
  spec.scheduling.success_chains = 0;
  EXPECT_THAT(InvalidPaths(spec), ::testing::ElementsAre("scheduling.success_chains"));
}

TEST(JobSpec, AWrongNumberOfChainsIsTheOnlyViolation) {
  JobSpec spec = FashionJob();
  spec.chains = -1;
  EXPECT_THAT(InvalidPaths(spec), ::testing::ElementsAre("chains"));
}

TEST(JobSpec, AStopRuleIsMadeOfWhatTheJobHas) {
  JobSpec spec = FashionJob();
  spec.until = {.rhat_below = 1.01, .ess_above = 400, .max_draws = 1000};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.until = {.rhat_below = 1, .ess_above = 0, .max_draws = 0};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("until.rhat_below", "until.ess_above", "until.max_draws"));
  spec.until = {.rhat_below = 1.01, .ess_above = 400};
  spec.chains = 1;
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("until.rhat_below")) << "there is nothing to compare with";
  spec.chains = 4;
  spec.trace_every = 0;
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("trace_every"));
  spec.trace_every = 1;
  spec.sampler.kind = LaplaceSpec{};
  spec.collect = {};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("until.rhat_below", "until.ess_above", "trace_every"));
  spec.until = {.max_draws = 3};
  spec.trace_every.reset();
  EXPECT_THAT(InvalidPaths(spec), IsEmpty()) << "draws are counted of every sampler";
}

TEST(JobSpec, ARunIsLongEnoughForItsStopRule) {
  JobSpec spec = FashionJob();  // two windows of 468 steps
  spec.until = {.ess_above = 50};
  spec.trace_every = 9;
  EXPECT_THAT(ValidateForData(spec, 60000), IsEmpty());
  spec.trace_every = 10;
  const auto rare = ValidateForData(spec, 60000);
  ASSERT_EQ(rare.size(), 1u);
  EXPECT_EQ(rare[0].path, "trace_every");
  EXPECT_THAT(rare[0].message, HasSubstr("94"));
  spec.until = {.max_draws = 2};
  EXPECT_THAT(ValidateForData(spec, 60000), IsEmpty()) << "it looks at no trace";
  spec.until = {.ess_above = 50};
  spec.trace_every.reset();
  spec.num_epochs = 4;
  const auto brief = ValidateForData(spec, 128 * 20);  // two epochs of 20 steps are collected
  ASSERT_EQ(brief.size(), 1u);
  EXPECT_EQ(brief[0].path, "until");
}

TEST(JobSpec, AStopRuleAsksForNoMoreThanItsValuesCanSay) {
  JobSpec spec = FashionJob();
  spec.chains = 4;
  spec.until = {.ess_above = 400};
  EXPECT_THAT(ValidateForData(spec, 60000), IsEmpty());
  spec.trace_every = 9;  // 104 values of a chain, 416 in all: at most 416 log10 416
  spec.until = {.ess_above = 1089};
  EXPECT_THAT(ValidateForData(spec, 60000), IsEmpty());
  spec.until = {.ess_above = 1090};
  const auto far = ValidateForData(spec, 60000);
  ASSERT_EQ(far.size(), 1u);
  EXPECT_EQ(far[0].path, "until.ess_above");
  EXPECT_THAT(far[0].message, HasSubstr("at most 1089"));
}

TEST(JobSpec, AugmentationIsForStochasticGradientsOnImages) {
  using ::testing::ElementsAre;
  JobSpec spec = FashionJob();
  spec.augmentation = {.crop_padding = 4, .flip = true};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.augmentation.crop_padding = -1;
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("augmentation.crop_padding"));
  spec.augmentation.crop_padding = 4;
  for (const SamplerKind& kind : {SamplerKind(MalaSpec{}), SamplerKind(PenaltyMhSpec{.proposal = Proposal::kLangevin}),
                                  SamplerKind(LaplaceSpec{})}) {
    spec.sampler.kind = kind;
    spec.collect = {};
    EXPECT_THAT(InvalidPaths(spec), ElementsAre("augmentation")) << spec.sampler.name();
  }
  spec.sampler.kind = SgldSpec{};
  spec.model.kind = LogisticRegressionPotential{};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("augmentation"));
}

TEST(JobSpec, CropsFitTheImages) {
  const auto paths = [](const AugmentationSpec& augmentation, const std::vector<int64_t>& input_shape) {
    std::vector<std::string> found;
    for (const auto& violation : ValidateForImages(augmentation, input_shape)) found.push_back(violation.path);
    return found;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(paths({27, true}, {1, 28, 30}), IsEmpty());
  EXPECT_THAT(paths({28, true}, {1, 28, 30}), ElementsAre("augmentation.crop_padding"));
  EXPECT_THAT(paths({0, true}, {784}), ElementsAre("augmentation"));
  EXPECT_THAT(paths({}, {784}), IsEmpty());
}

TEST(JobSpec, AStoredModuleIsJudgedByItsNameAndItsDataAlone) {
  using ::testing::ElementsAre;
  JobSpec spec = FashionJob();
  spec.model.kind = StoredNetworkModel{"mine", ModelFormat::kTorchScript};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.sampler.kind = MalaSpec{};
  spec.collect.kinds.clear();
  EXPECT_THAT(InvalidPaths(spec), IsEmpty()) << "its buffers are constants";
  const Dataset images{.name = "d", .input_shape = {1, 28, 28}, .num_rows = 60000, .targets = Classes{10}};
  EXPECT_TRUE(CheckAgainstData(spec, &images).ok());
  const Dataset targets{.name = "d", .input_shape = {3}, .num_rows = 60000, .targets = Numbers()};
  EXPECT_FALSE(CheckAgainstData(spec, &targets).ok());
  spec.model.kind = StoredNetworkModel{"No Good", ModelFormat::kTorchScript};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("model.torchscript"));
}

TEST(JobSpec, AnalyticPotentialsTakeNoData) {
  JobSpec spec;
  spec.name = "gaussian";
  spec.model.kind = GaussianPotential{.dimension = 10, .precision = 2};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
  spec.num_steps = 100;
  EXPECT_THAT(Validate(spec), IsEmpty());
  spec.dataset = "fashion-mnist";
  EXPECT_THAT(InvalidPaths(spec), ::testing::ElementsAre("dataset"));
}

TEST(JobSpec, RegressionsTakeDataEpochsAndAPriorAsNetworksDo) {
  JobSpec spec = FashionJob();
  spec.model.kind = LinearRegressionPotential{};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  EXPECT_EQ(PlanSteps(spec, 60000).steps_per_epoch, 60000 / spec.batch_size);
  spec.dataset.clear();
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("dataset.name"));
}

TEST(JobSpec, TargetsAreThoseThatTheModelLearns) {
  const auto paths = [](ModelSpec model, const Targets& targets) {
    std::vector<std::string> found;
    Dataset dataset{.name = "d", .targets = targets};
    for (const FieldViolation& violation : ValidateTargets(model, dataset)) found.push_back(violation.path);
    return found;
  };
  const ModelSpec lenet5{BuiltinModel{"lenet5", {}}}, linear{LinearRegressionPotential{}},
      logistic{LogisticRegressionPotential{}};
  EXPECT_THAT(paths(lenet5, Classes{10}), IsEmpty());
  EXPECT_THAT(paths(lenet5, Numbers()), ElementsAre("likelihood"));
  const auto with = [&](const LikelihoodKind& likelihood) { return ModelSpec{lenet5.kind, likelihood}; };
  const ModelSpec categorical = with(CategoricalLikelihood()), bernoulli = with(BernoulliLikelihood()),
                  gaussian = with(GaussianLikelihood{.variance = 1}),
                  heteroscedastic = with(HeteroscedasticGaussianLikelihood());
  EXPECT_THAT(paths(categorical, Classes{10}), IsEmpty());
  EXPECT_THAT(paths(categorical, Numbers()), ElementsAre("likelihood.categorical"));
  EXPECT_THAT(paths(bernoulli, Classes{2}), IsEmpty());
  EXPECT_THAT(paths(bernoulli, Classes{3}), ElementsAre("likelihood.bernoulli"));
  EXPECT_THAT(paths(bernoulli, Numbers()), ElementsAre("likelihood.bernoulli"));
  EXPECT_THAT(paths(gaussian, Numbers()), IsEmpty());
  EXPECT_THAT(paths(gaussian, Classes{2}), ElementsAre("likelihood.gaussian"));
  EXPECT_THAT(paths(heteroscedastic, Classes{2}), ElementsAre("likelihood.heteroscedastic_gaussian"));
  EXPECT_THAT(paths(linear, Numbers()), IsEmpty());
  EXPECT_THAT(paths(linear, Classes{10}), ElementsAre("dataset.name"));
  EXPECT_THAT(paths(logistic, Classes{2}), IsEmpty());
  EXPECT_THAT(paths(logistic, Classes{3}), ElementsAre("dataset.name"));
}

TEST(JobSpec, AGaussianLikelihoodHasAVarianceOrLearnsIt) {
  const auto paths = [](const ModelSpec& model) {
    JobSpec spec = FashionJob();
    spec.model = model;
    return InvalidPaths(spec);
  };
  const BuiltinModel linear{"linear", {}};
  EXPECT_THAT(paths({linear, GaussianLikelihood{.variance = 2}}), IsEmpty());
  EXPECT_THAT(paths({linear, GaussianLikelihood{.variance = {}, .learned = true}}), IsEmpty());
  EXPECT_THAT(paths({linear, GaussianLikelihood()}), ElementsAre("likelihood.gaussian"));
  EXPECT_THAT(paths({linear, GaussianLikelihood{.variance = 2, .learned = true}}), ElementsAre("likelihood.gaussian"));
  EXPECT_THAT(paths({linear, GaussianLikelihood{.variance = 0}}), ElementsAre("likelihood.gaussian.variance"));
  EXPECT_THAT(paths({LinearRegressionPotential(), CategoricalLikelihood()}), ElementsAre("likelihood"));
}

TEST(JobSpec, APriorOfALayerThatTheModelLacksIsRefused) {
  JobSpec spec = FashionJob();
  spec.prior.kind = GaussianPrior{1, {{"conv1", 2}, {"conv9", 3}}};
  const Dataset dataset{.name = "d", .input_shape = {1, 28, 28}, .num_rows = 60000, .targets = Classes{10}};
  const auto violations = FieldViolationsOf(CheckAgainstData(spec, &dataset));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "prior.gaussian.layers.conv9");
  EXPECT_THAT(violations[0].message, HasSubstr("conv1, conv2, fc1, fc2, fc3"));
  spec.prior.kind = GaussianPrior{1, {{"conv1", 2}}};
  EXPECT_TRUE(CheckAgainstData(spec, &dataset).ok());
}

TEST(JobSpec, ChecksBatchAndCollectAgainstTheNumberOfExamples) {
  JobSpec spec = FashionJob();
  EXPECT_EQ(ValidateForData(spec, 100)[0].path, "batch_size");
  spec.collect = {.every_steps = 1'000'000};
  const auto violations = ValidateForData(spec, 60000);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "collect");
  EXPECT_THAT(violations[0].message, HasSubstr("no draw would be kept"));
}

TEST(JobSpec, StepsLeftOverAfterTheLastCycleAreRefused) {
  JobSpec spec = FashionJob();
  spec.num_epochs.reset();
  spec.burn_in = {};
  spec.collect = {.every_steps = 1};
  spec.num_steps = 1003;
  const auto violations = ValidateForData(spec, 60000);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "num_steps");
  EXPECT_EQ(violations[0].message, "1003 steps are not divisible by the 4 cycles of the schedule: 1000 or 1004 are");
  spec.num_steps = 1004;
  EXPECT_THAT(ValidateForData(spec, 60000), IsEmpty());
}

TEST(JobSpec, TheBatchesOfAMetropolisStepFitTheData) {
  JobSpec spec = FashionJob();
  spec.batch_size = 100;
  for (const SamplerKind& kind :
       {SamplerKind(PenaltyMhSpec{.num_batches = 21}), SamplerKind(BatchedMhSpec{.num_batches = 21}),
        SamplerKind(BarkerMhSpec{.num_batches = 21})}) {
    spec.sampler.kind = kind;
    EXPECT_THAT(ValidateForData(spec, 2100), IsEmpty()) << "all of the data, once";
    const auto violations = ValidateForData(spec, 2099);
    ASSERT_EQ(violations.size(), 1u);
    EXPECT_EQ(violations[0].path, "sampler." + spec.sampler.name() + ".num_batches");
    EXPECT_THAT(violations[0].message, HasSubstr("at most 20"));
  }
}

TEST(JobSpec, SamplersThatSubsampleNeedADataSet) {
  JobSpec spec;
  spec.name = "gauss";
  spec.model.kind = GaussianPotential{4, 1};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
  spec.num_steps = 100;
  for (const SamplerKind& kind : {SamplerKind(RandomWalkSpec{}), SamplerKind(MalaSpec{}), SamplerKind(HmcSpec{})}) {
    spec.sampler.kind = kind;
    EXPECT_THAT(Validate(spec), IsEmpty()) << spec.sampler.name();
  }
  for (const SamplerKind& kind : {SamplerKind(PenaltyMhSpec{}), SamplerKind(BatchedMhSpec{}),
                                  SamplerKind(TemperedMhSpec{10}), SamplerKind(BarkerMhSpec{})}) {
    spec.sampler.kind = kind;
    EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler." + spec.sampler.name()));
  }
}

TEST(JobSpec, KeepsAllKindsUnlessTold) {
  JobSpec spec = FashionJob();
  EXPECT_THAT(KindsOf(spec), ::testing::ElementsAre(DrawKind::kTheta, DrawKind::kThetaA));
  spec.collect.kinds = {DrawKind::kThetaA};
  EXPECT_THAT(KindsOf(spec), ::testing::ElementsAre(DrawKind::kThetaA));
  spec.collect.kinds.clear();
  spec.sampler.kind = SgldSpec{};
  EXPECT_THAT(KindsOf(spec), ::testing::ElementsAre(DrawKind::kTheta));
}

TEST(JobSpec, GradientUncertaintyTakesEveryNetworkWhoseExamplesHaveGradients) {
  JobSpec spec = FashionJob();
  spec.sampler.kind = GradientUncertaintySpec{};
  for (const char* model : {"mlp", "lenet5", "cnn5", "resnet20-frn", "vgg16"}) {
    spec.model.kind = BuiltinModel{model, {}};
    EXPECT_THAT(InvalidPaths(spec), IsEmpty()) << model;
  }
  spec.model.kind = LayeredModel{{{ConvLayer{.out_channels = 4}}, {FrnLayer{}}, {LinearLayer{}}}};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.model.kind = BuiltinModel{"resnet18", {}};  // batch norm
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.gradient_uncertainty"));
  spec.model.kind = PotentialKind(LogisticRegressionPotential{});
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.gradient_uncertainty"));
}

TEST(JobSpec, ListsOfKindsAreBounded) {
  JobSpec spec;
  spec.collect.kinds.assign(500'000, DrawKind::kTheta);
  const auto violations = Validate(spec);
  EXPECT_TRUE(std::ranges::any_of(violations, [](const auto& v) { return v.path == "collect.kinds"; }));
  EXPECT_LT(violations.size(), limits::kMaxViolations);
}

TEST(JobSpec, AFewOfVeryManyViolationsAreListed) {
  std::vector<FieldViolation> violations(100'000, {"path", "message"});
  const absl::Status refused = InvalidFields(violations);
  EXPECT_EQ(FieldViolationsOf(refused).size(), limits::kMaxViolations);
  EXPECT_NE(std::string(refused.message()).find("; and 99968 more"), std::string::npos) << refused;
}

}  // namespace
}  // namespace chainfleet
