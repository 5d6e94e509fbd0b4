#include "core/domain/sbc_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "tests/core/domain/invalid_paths.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobSpec Calibration() {
  JobSpec spec;
  spec.kind = JobKind::kSbc;
  spec.name = "calibration";
  spec.model.kind = LinearRegressionPotential{};
  spec.dataset = "plane";
  spec.prior.kind = GaussianPrior{1};
  spec.sampler.kind = MalaSpec{};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
  spec.num_steps = 100;
  spec.chains = 100;
  return spec;
}

Dataset Rows(int64_t bytes) {
  Dataset data{.name = "plane", .input_shape = {2}, .num_rows = 1000, .targets = Numbers()};
  data.shards = {{.first_row = 0, .num_rows = 1000, .object = {.size_bytes = bytes}}};
  return data;
}

TEST(SbcRules, TakesASamplerWithAProperPriorOnData) {
  EXPECT_THAT(Validate(Calibration()), IsEmpty());
  JobSpec spec = Calibration();
  spec.model.kind = BuiltinModel{"softmax_regression", {}};
  spec.prior.kind = LaplacePrior{};
  spec.until.max_draws = 1000;
  spec.sweep.temperature = {1, 3};
  EXPECT_THAT(Validate(spec), IsEmpty());
  spec.chains = 1;
  EXPECT_THAT(Validate(spec), IsEmpty()) << "a test needs more, the ranks do not";
}

TEST(SbcRules, NeedsAProperPrior) {
  JobSpec spec = Calibration();
  spec.prior = PriorSpec();
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("prior.gaussian.precision"));
  spec.prior.kind = GaussianPrior{1, {{"intercept", 0}, {"weights", 2}}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("prior.gaussian.layers.intercept"));
  spec.kind = JobKind::kPosterior;
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
}

TEST(SbcRules, NeedsAModelThatIsAFunctionOfItsParameters) {
  JobSpec spec = Calibration();
  const LayerSpec last{LinearLayer{}};
  spec.model.kind = LayeredModel{{{FlattenLayer{}}, {DropoutLayer{}}, last}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("model"));
  spec.model.kind = LayeredModel{{{ResidualLayer{.branch = {{DropoutLayer{}}}, .shortcut = {}}}, last}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("model")) << "in a branch";
  spec.sampler.kind = SgldSpec{};  // others refuse batch norm themselves
  spec.model.kind = LayeredModel{{{BatchNormLayer{}}, last}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("model"));
  spec.model.kind = StoredNetworkModel{"mine", ModelFormat::kTorchScript};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("model.torchscript"));
  spec.model.kind = StoredNetworkModel{"mine", ModelFormat::kExported};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  StoredModel stored{.name = "mine", .object = {}, .created_at = {}};
  stored.signature = NetworkSignature();
  EXPECT_THAT(ValidateSbcData(spec, Rows(1), &stored), IsEmpty());
  stored.signature->has_dropout = true;
  ASSERT_EQ(ValidateSbcData(spec, Rows(1), &stored).size(), 1u);
  EXPECT_THAT(ValidateSbcData(spec, Rows(1), &stored)[0].message, HasSubstr("net.eval()"));
  stored.signature->has_dropout = false;
  stored.signature->statistics.resize(1);
  EXPECT_THAT(ValidateSbcData(spec, Rows(1), &stored).size(), 1u);
  spec.model.kind = GaussianPotential{};
  spec.dataset.clear();
  spec.prior = PriorSpec();
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("kind"));
}

TEST(SbcRules, NeedsASamplerWhoseStepsAreDraws) {
  JobSpec spec = Calibration();
  spec.model.kind = BuiltinModel{"softmax_regression", {}};
  spec.schedule = {StepScale::kLearningRate, ConstantSchedule{0.1}};
  for (const SamplerSpec& sampler :
       std::vector<SamplerSpec>{{SwaSpec{}}, {SwagSpec{}}, {McDropoutSpec{}}, {LaplaceSpec{}}}) {
    spec.sampler = sampler;
    EXPECT_THAT(InvalidPaths(spec), ::testing::Contains("sampler." + spec.sampler.name()));
  }
  spec.sampler.kind = BsamSpec{};
  EXPECT_THAT(InvalidPaths(spec), ::testing::Contains("sampler.bsam"));
}

TEST(SbcRules, RefusesAnotherPriorOtherInputsAndRulesThatCompareChains) {
  JobSpec spec = Calibration();
  spec.sweep.prior_precision = {1, 2};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sweep.prior_precision"));
  spec = Calibration();
  spec.until = {.rhat_below = 1.01, .ess_above = {}, .max_draws = {}, .nested_rhat_below = {}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("until"));
  spec.until = {.rhat_below = {}, .ess_above = 100, .max_draws = {}, .nested_rhat_below = {}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("until"));
  spec = Calibration();
  spec.model.kind = BuiltinModel{"softmax_regression", {}};
  spec.sampler.kind = SgldSpec{};
  spec.augmentation.flip = true;
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("augmentation"));
}

TEST(SbcRules, TheDataOfAllChainsAreBounded) {
  JobSpec spec = Calibration();
  spec.sweep.temperature = {1, 3};
  const auto check = [&spec](int64_t bytes) {
    const Dataset data = Rows(bytes);
    return CheckAgainstData(spec, &data);
  };
  const int64_t most = limits::kMaxSimulatedBytes / 200;  // 100 chains of each point
  EXPECT_TRUE(check(most).ok()) << check(most);
  const auto violations = FieldViolationsOf(check(most + 1));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "chains");
  EXPECT_THAT(violations[0].message, HasSubstr("at most 199 chains"));
  spec.kind = JobKind::kPosterior;
  EXPECT_TRUE(check(most + 1).ok());
}

}  // namespace
}  // namespace chainfleet
