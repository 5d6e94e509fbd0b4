#include "core/domain/microcanonical_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/domain/invalid_paths.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;

JobSpec ShortJob() {
  JobSpec spec;
  spec.name = "short";
  spec.model.kind = BuiltinModel{"lenet5", {}};
  spec.dataset = "fashion-mnist";
  spec.prior.kind = GaussianPrior{25};
  spec.num_epochs = 12;
  spec.chains = 4;
  return spec;
}

TEST(MicrocanonicalRules, SmileTakesNoMoreNoiseOfReshuffledBatchesThanTheRefreshHides) {
  JobSpec spec = ShortJob();
  SmileSpec smile{.optimizer_steps = 20, .warm_up_steps = 30};
  const auto with = [&](Minibatches minibatches) {
    spec.sampler.kind = smile;
    spec.schedule = {StepScale::kLearningRate, ConstantSchedule{1e-3}};
    spec.minibatches = minibatches;
    return InvalidPaths(spec);
  };
  EXPECT_THAT(with(Minibatches::kReshuffle), IsEmpty());
  smile.noise_share = 0.2;
  EXPECT_THAT(with(Minibatches::kReshuffle), ::testing::ElementsAre("minibatches"));
  EXPECT_THAT(with(Minibatches::kIndependent), IsEmpty());
  smile.warm_up_steps = 0;
  EXPECT_THAT(with(Minibatches::kIndependent), ::testing::ElementsAre("sampler.smile.decoherence_length"));
  smile.decoherence_length = 3;
  EXPECT_THAT(with(Minibatches::kReshuffle), IsEmpty());
  spec.temperature = 0;
  EXPECT_THAT(InvalidPaths(spec), ::testing::ElementsAre("temperature"));
}

TEST(MicrocanonicalRules, MileHasItsOwnBurnInAndTheLearningRateOfItsOptimizer) {
  JobSpec spec = ShortJob();
  spec.num_epochs.reset();
  spec.num_steps = 120;
  spec.burn_in = {};
  spec.collect = {.every_steps = 10};
  spec.sampler.kind = MileSpec{.optimizer_steps = 20, .warm_up_steps = 30};
  spec.schedule = {StepScale::kLearningRate, ConstantSchedule{1e-3}};
  EXPECT_THAT(Validate(spec), IsEmpty());
  EXPECT_EQ(PlanSteps(spec, 60000).NumDraws(), 7);
  spec.burn_in.steps = 10;
  EXPECT_EQ(PlanSteps(spec, 60000).NumDraws(), 7);
  spec.burn_in.steps = 90;
  EXPECT_EQ(PlanSteps(spec, 60000).NumDraws(), 3);
  spec.num_steps = 50;
  spec.burn_in = {};
  EXPECT_THAT(ValidateForData(spec, 60000), ::testing::SizeIs(1)) << "all steps are burn-in";
  spec.num_steps = 120;
  JobSpec other = spec;
  other.schedule.scale = StepScale::kStepSize;
  EXPECT_THAT(InvalidPaths(other), ::testing::ElementsAre("step_size"));
  other = spec;
  other.schedule.kind = LinearSchedule{1e-3, 1e-4};
  EXPECT_THAT(InvalidPaths(other), ::testing::ElementsAre("learning_rate"));
  other = spec;
  other.temperature = 0;
  EXPECT_THAT(InvalidPaths(other), ::testing::ElementsAre("temperature"));
  other = spec;
  other.dataset.clear();
  other.prior = {};
  other.augmentation = {};
  other.standardize = {};
  other.model = {GaussianPotential{2}};
  EXPECT_THAT(InvalidPaths(other), IsEmpty());
}

TEST(MicrocanonicalRules, AVelocityNeedsTwoParametersToTurn) {
  JobSpec spec = ShortJob();
  spec.sampler.kind = SmileSpec{.optimizer_steps = 20, .warm_up_steps = 30};
  spec.schedule = {StepScale::kLearningRate, ConstantSchedule{1e-3}};
  spec.prior.kind = GaussianPrior{1};
  spec.model = {LogisticRegressionPotential{.intercept = false}};
  for (const int64_t features : {1, 2}) {
    Dataset data{.name = spec.dataset, .input_shape = {features}, .num_rows = 60000, .targets = Classes{2}};
    const auto violations = FieldViolationsOf(CheckAgainstData(spec, &data));
    EXPECT_EQ(violations.empty() ? "" : violations[0].path, features == 1 ? "sampler.smile" : "");
  }
}

}  // namespace
}  // namespace chainfleet
