#include "core/domain/posthoc_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/domain/invalid_paths.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobSpec Job(const SamplerKind& sampler) {
  JobSpec spec;
  spec.name = "post-hoc";
  spec.model.kind = BuiltinModel{"lenet5", {}};
  spec.dataset = "digits";
  spec.prior.kind = GaussianPrior{10};
  spec.sampler.kind = sampler;
  spec.schedule.kind = ConstantSchedule{0.1};
  spec.num_epochs = 2;
  return spec;
}

TEST(PostHocRules, DrawsFollowTheTrainingAndLaplacePassesOverTheDataBetween) {
  JobSpec spec = Job(McDropoutSpec{.draws = 5});
  StepPlan plan = PlanSteps(spec, 1000);
  EXPECT_EQ(plan.training_steps, 14);
  EXPECT_EQ(plan.total_steps, 19);
  spec.sampler.kind = LaplaceSpec{.draws = 5};
  plan = PlanSteps(spec, 1000);
  EXPECT_EQ(plan.pass_steps, 8) << "the tail that no epoch sees is part of the pass";
  EXPECT_EQ(plan.total_steps, 14 + 8 + 5);
  EXPECT_EQ(plan.NumDraws(), 5);
  EXPECT_FALSE(plan.CollectsAfter(14 + 8));
  EXPECT_TRUE(plan.CollectsAfter(14 + 8 + 1));
  EXPECT_TRUE(plan.CollectsAfter(14 + 8 + 5));
  EXPECT_FALSE(plan.CollectsAfter(14 + 8 + 6));
}

TEST(PostHocRules, DropoutNeedsASecondLayerAndOnePrior) {
  JobSpec spec = Job(McDropoutSpec{});
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.prior.kind = GaussianPrior{10, {{"fc1", 1}}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("prior"));
  spec = Job(McDropoutSpec{});
  spec.model.kind = BuiltinModel{"softmax_regression", {}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.mc_dropout"));
  spec.model.kind = LayeredModel{{{ConvLayer{.out_channels = 4, .groups = 2}}, {LinearLayer{}}}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.mc_dropout"));
  spec.model.kind = BuiltinModel{"vit-tiny", {}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.mc_dropout")) << "attention";
  spec.model.kind = LayeredModel{
      {{ToSequenceLayer{.width = 4}}, {Conv1dLayer{.out_channels = 4}}, {FlattenLayer{}}, {LinearLayer{}}}};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.model.kind = StoredNetworkModel{"mine"};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.model.kind = StoredNetworkModel{"mine", ModelFormat::kTorchScript};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.mc_dropout")) << "its layers are not known";
  const ParameterShape weight{.name = "weight", .shape = {3, 2}}, bias{.name = "bias", .shape = {3}};
  EXPECT_EQ(ValidatePostHocSize(spec.sampler, {weight, bias}).front().path, "sampler.mc_dropout");
  EXPECT_THAT(ValidatePostHocSize(spec.sampler, {weight, bias, weight}), IsEmpty());
  spec.model.kind = BuiltinModel{"lenet5", {}};
  spec.sampler.kind = McDropoutSpec{.rate = 1};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.mc_dropout.rate"));
}

TEST(PostHocRules, LaplaceNeedsAProperGaussianPrior) {
  JobSpec spec = Job(LaplaceSpec{});
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.prior.kind = GaussianPrior{10, {{"fc1", 1}}};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  for (const PriorKind& prior : {PriorKind(GaussianPrior{}), PriorKind(GaussianPrior{10, {{"fc1", 0}}}),
                                 PriorKind(LaplacePrior{}), PriorKind(StudentTPrior{})}) {
    spec.prior.kind = prior;
    EXPECT_THAT(InvalidPaths(spec), ElementsAre("prior"));
  }
}

TEST(PostHocRules, LaplaceNamesWhatAStructureLacks) {
  JobSpec spec = Job(LaplaceSpec{});
  spec.model.kind = BuiltinModel{"resnet20-frn", {}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.laplace.structure"));
  spec.model.kind = BuiltinModel{"vit-tiny", {}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.laplace.structure"));
  spec.sampler.kind = LaplaceSpec{.structure = CurvatureStructure::kDiagonal};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.model.kind = BuiltinModel{"resnet18", {}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.laplace")) << "batch norm";
  spec.model.kind = LinearRegressionPotential{};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.sampler.kind = LaplaceSpec{};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.laplace.structure"));
}

TEST(PostHocRules, KroneckerKnowsNoParameterBesideTheLayers) {
  JobSpec spec = Job(LaplaceSpec{});
  spec.model.likelihood = GaussianLikelihood{.variance = {}, .learned = true};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.laplace.structure"));
  spec.model.likelihood = HeteroscedasticGaussianLikelihood();
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.model.likelihood = GaussianLikelihood{.variance = {}, .learned = true};
  spec.sampler.kind = LaplaceSpec{.structure = CurvatureStructure::kDiagonal};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
}

TEST(PostHocRules, AMixtureHasNoCurvature) {
  JobSpec spec;
  spec.name = "mixture";
  spec.model.kind = GaussianMixturePotential{.weights = {1}, .means = {0}, .stddev = {1}};
  spec.sampler.kind = LaplaceSpec{.structure = CurvatureStructure::kFull};
  spec.schedule.kind = ConstantSchedule{0.1};
  spec.num_steps = 10;
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sampler.laplace"));
}

TEST(PostHocRules, AWholeMatrixIsForSmallNetworks) {
  const SamplerSpec full{LaplaceSpec{.structure = CurvatureStructure::kFull}};
  EXPECT_THAT(ValidatePostHocSize(full, {{"w", {64, 64}}}), IsEmpty());
  const auto violations = ValidatePostHocSize(full, {{"w", {64, 64}}, {"b", {1}, 4096}});
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "sampler.laplace.structure");
  EXPECT_THAT(violations[0].message, HasSubstr("4097"));
  EXPECT_THAT(ValidatePostHocSize({LaplaceSpec{}}, {{"w", {640, 640}}}), IsEmpty());
}

TEST(PostHocRules, CurvatureCountsInTheMemoryOfAChain) {
  const std::vector<ParameterShape> layer = {{"w", {10, 99}}, {"b", {10}, 990}};
  EXPECT_EQ(CurvatureBytes({SgdSpec{}}, layer), 0);
  EXPECT_EQ(CurvatureBytes({LaplaceSpec{CurvatureStructure::kDiagonal}}, layer), 2 * 8 * 1000);
  EXPECT_EQ(CurvatureBytes({LaplaceSpec{CurvatureStructure::kFull}}, layer), 2 * 8 * 1000 * 1000);
  EXPECT_EQ(CurvatureBytes({LaplaceSpec{}}, layer), 2 * 8 * (10 * 10 + 100 * 100));
}

}  // namespace
}  // namespace chainfleet
