#include "core/domain/init_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/domain/job_spec.h"
#include "core/domain/posthoc_rules.h"
#include "core/domain/step_size_schedule.h"
#include "core/domain/sweep_points.h"
#include "tests/core/domain/invalid_paths.h"

namespace chainfleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobSpec TrainedJob() {
  JobSpec spec;
  spec.name = "lenet";
  spec.model.kind = BuiltinModel{"lenet5", {}};
  spec.dataset = "fashion-mnist";
  spec.schedule.kind = ConstantSchedule{0.1};
  spec.num_epochs = 12;
  return spec;
}

TEST(InitSpec, OneStartIsGivenThatTheModelHas) {
  JobSpec spec = TrainedJob();
  spec.init = {.theta = {0}, .weights = {"map"}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("init"));
  spec.init = {.perturb = 0.1, .weights = {"map", "No Good", "map"}};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("init.weights[1]", "init.weights[2]"));
  spec.init = {.model = true};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("init.model")) << "a list of layers has no file";
  spec.model.kind = StoredNetworkModel{"mine"};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.init = {.weights = std::vector<std::string>(257, "map")};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("init.weights"));
  spec.init.weights.clear();
  for (char last = 'a'; last <= 'z'; ++last) {
    for (const char more : {'a', 'b'}) spec.init.weights.push_back(std::string(40, 'a') + last + more);
  }
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("init.weights")) << "52 names of 42 characters";
  JobSpec analytic;
  analytic.name = "gaussian";
  analytic.model.kind = GaussianPotential{.dimension = 10, .precision = 2};
  analytic.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
  analytic.num_steps = 100;
  analytic.init.weights = {"map"};
  EXPECT_THAT(InvalidPaths(analytic), ElementsAre("init.weights"));
}

TEST(InitSpec, FilesOfWeightsHaveTheParametersOfTheNetwork) {
  const std::vector<ParameterShape> parameters = {{.name = "0.weight", .shape = {3, 2}},
                                                  {.name = "0.bias", .shape = {3}},
                                                  {.name = "likelihood.log_variance", .shape = {1}}};
  const auto why = [&](const std::vector<TensorSignature>& tensors) { return WhyNoStart(tensors, parameters); };
  const TensorSignature weight{"0.weight", "float32", {3, 2}}, bias{"0.bias", "bfloat16", {3}};
  EXPECT_EQ(why({weight, bias, {"1.running_mean", "float32", {3}}, {"1.num_batches_tracked", "int64", {}}}), "");
  EXPECT_EQ(why({bias, {"likelihood.log_variance", "float64", {1}}, weight}), "");
  EXPECT_EQ(why({weight}), "lacks 0.bias of the network");
  EXPECT_EQ(why({{"0.weight", "float32", {2, 3}}, bias}),
            "has 0.weight as float32 [2, 3]; the network has float32 [3, 2]");
  EXPECT_EQ(why({weight, {"0.bias", "int64", {3}}}), "has 0.bias as int64 [3]; the network has float32 [3]");
  EXPECT_EQ(why({weight, bias, {"2.weight", "float32", {1}}}), "has 2.weight, which the job does not sample");
  EXPECT_EQ(why({{"a.weight", "float32", {1}}}), "lacks 0.weight, 0.bias of the network");
  EXPECT_EQ(
      why({{"theta/0.weight", "float32", {9, 3, 2}}, {"theta/0.bias", "float32", {9, 3}}, {"weights", "float64", {9}}}),
      "");
  EXPECT_EQ(why({{"theta/0.weight", "float32", {9, 3, 2}}, bias}), "lacks 0.bias of the network");
  const std::vector<StoredModel> files = {{.name = "good", .signature = NetworkSignature{.parameters = {weight, bias}}},
                                          {.name = "bad", .signature = NetworkSignature{.parameters = {weight}}}};
  const auto violations = ValidateWeights(files, parameters);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "init.weights[1]");
  EXPECT_EQ(violations[0].message, "bad lacks 0.bias of the network");
}

TEST(Sample, NamesParametersOfAnExportedNetwork) {
  JobSpec spec = TrainedJob();
  spec.model.sample = {"head.*"};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sample")) << "a built-in network has no file";
  spec.model.kind = StoredNetworkModel{"mine"};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  spec.model.sample = {"head.*", "", std::string(129, 'a')};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sample[1]", "sample[2]"));
  spec.model.sample.assign(65, "*");
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("sample"));
}

TEST(Sample, AStarStandsForAnyCharacters) {
  EXPECT_TRUE(IsSampled("trunk.weight", {})) << "by default all are";
  EXPECT_TRUE(IsSampled("head.weight", {"tail", "head.*"}));
  EXPECT_TRUE(IsSampled("0.lora_a.weight", {"*.lora_*"}));
  EXPECT_TRUE(IsSampled("aXbXXc", {"a*b*c"}));
  EXPECT_TRUE(IsSampled("a", {"a**"}));
  EXPECT_FALSE(IsSampled("head.weight", {"head"}));
  EXPECT_FALSE(IsSampled("ahead.weight", {"head.*"}));
  EXPECT_FALSE(IsSampled("head", {"head.*"}));
  EXPECT_FALSE(IsSampled("head.weight", {"head?weight", "[h]ead.weight"}));
  EXPECT_FALSE(IsSampled(std::string(100'000, 'a'), {"*a*a*a*a*a*a*a*b"}));
}

TEST(Sample, OnlyMatchesArePartOfTheta) {
  const NetworkSignature network{.inputs = {{"x", "float32", {2}}},
                                 .output = {"y", "float32", {1}},
                                 .parameters = {{"0.weight", "float32", {4, 2}},
                                                {"0.bias", "float32", {4}},
                                                {"1.weight", "float32", {1, 4}},
                                                {"1.bias", "float32", {1}}}};
  const auto head = ParametersOf(network, {2}, 1, "model.exported", {"1.*"});
  ASSERT_TRUE(head.ok()) << head.status();
  ASSERT_EQ(head->size(), 2u);
  EXPECT_EQ(head->back().name, "1.bias");
  EXPECT_EQ(head->back().offset, 4);
  EXPECT_EQ(NumParameters(*head), 5);
  const auto violations = FieldViolationsOf(ParametersOf(network, {2}, 1, "model.exported", {"1.*", "2.*"}).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "sample[1]");
  EXPECT_EQ(violations[0].message,
            "2.* matches no parameter of the network, which has 0.weight, 0.bias, 1.weight and 1 more");
}

TEST(NetworkSignature, SeveralInputsAreSideBySideInARow) {
  const std::vector<TensorSignature> inputs = {{"ids", "int64", {2, 3}}, {"mask", "bool", {6}}, {"age", "float32", {}}};
  EXPECT_EQ(WhyUnread(inputs, {13}), "");
  EXPECT_EQ(
      WhyUnread(inputs, {12}),
      "the network takes int64 [n, 2, 3] and bool [n, 6] and float32 [n] in rows float32 [n, 13], the data set has "
      "float32 [n, 12]");
  EXPECT_NE(WhyUnread(inputs, {1, 13}), "");
  EXPECT_EQ(WhyUnread({inputs[0]}, {2, 3}), "");
  EXPECT_NE(WhyUnread({inputs[0]}, {6}), "") << "an only input keeps its shape";
  EXPECT_NE(WhyUnread({inputs[0], {"x", "float64", {1}}}, {7}), "");
  EXPECT_NE(WhyUnread({}, {0}), "");
  const NetworkSignature network{
      .inputs = inputs, .output = {"y", "float32", {1}}, .parameters = {{"weight", "float32", {4}}}};
  EXPECT_TRUE(ParametersOf(network, {13}, 1, "model.exported").ok());
  EXPECT_EQ(FieldViolationsOf(ParametersOf(network, {14}, 1, "model.exported").status()).at(0).path, "model.exported");
}

TEST(StoredNetwork, WithBatchNormOverMiniBatchesIsNoFunctionOfTheta) {
  JobSpec spec = TrainedJob();
  spec.model.kind = StoredNetworkModel{"mine"};
  spec.sampler.kind = MalaSpec{};
  StoredModel file{.name = "mine",
                   .signature = NetworkSignature{.inputs = {{"x", "float32", {2}}},
                                                 .output = {"y", "float32", {3}},
                                                 .parameters = {{"0.weight", "float32", {3, 2}}},
                                                 .has_dropout = true}};
  const Dataset data{.name = "d", .input_shape = {2}, .num_rows = 600, .targets = Classes{3}};
  EXPECT_TRUE(CheckAgainstData(spec, &data, &file, {}).ok()) << CheckAgainstData(spec, &data, &file, {});
  spec.sampler.kind = GradientUncertaintySpec{};
  EXPECT_FALSE(CheckAgainstData(spec, &data, &file, {}).ok()) << "its norms would be those of other masks";
  spec.sampler.kind = MalaSpec{};
  file.signature->statistics = {{"1.running_mean", "float32", {3}}, {"1.running_var", "float32", {3}}};
  const auto violations = FieldViolationsOf(CheckAgainstData(spec, &data, &file, {}));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "sampler.mala");
  EXPECT_TRUE(violations[0].message.ends_with("batch norm over mini-batches is not: export net.eval()"));
  spec.sampler.kind = SgldSpec{};
  EXPECT_TRUE(CheckAgainstData(spec, &data, &file, {}).ok());
}

TEST(InitSpec, AVarianceThatNothingTrainsComesFromTheFiles) {
  JobSpec spec = TrainedJob();
  spec.model = {BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = {}, .learned = true}};
  spec.init.weights = {"map"};
  const Dataset data{.name = "d", .input_shape = {2}, .num_rows = 600, .targets = Numbers()};
  StoredModel file{
      .name = "map",
      .signature = NetworkSignature{.parameters = {{"fc1.weight", "float32", {1, 2}}, {"fc1.bias", "float32", {1}}}}};
  EXPECT_TRUE(CheckAgainstData(spec, &data, nullptr, {file}).ok()) << CheckAgainstData(spec, &data, nullptr, {file});
  spec.sampler.kind = SgdSpec{};
  spec.schedule.kind = ConstantSchedule{0};
  const auto violations = FieldViolationsOf(CheckAgainstData(spec, &data, nullptr, {file}));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "init.weights[0]");
  file.signature->parameters.push_back({"likelihood.log_variance", "float32", {1}});
  EXPECT_TRUE(CheckAgainstData(spec, &data, nullptr, {file}).ok());
  for (TensorSignature& tensor : file.signature->parameters) {
    tensor.name = "theta/" + tensor.name;
    tensor.shape.insert(tensor.shape.begin(), 3);
  }
  EXPECT_TRUE(CheckAgainstData(spec, &data, nullptr, {file}).ok()) << "three draws";
}

// Samplers that draw around a point need no training where a file or a point gives it.
TEST(InitSpec, PostHocSamplersMayTrainForNoStep) {
  JobSpec spec = TrainedJob();
  spec.schedule = {StepScale::kLearningRate, LinearSchedule{0.1, 0.01}};
  spec.burn_in = {};
  spec.collect = {};
  spec.num_epochs = 0;
  spec.sampler.kind = LaplaceSpec{};
  spec.prior.kind = GaussianPrior{1};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("num_epochs")) << "there is no trained start";
  spec.init.weights = {"map"};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  EXPECT_THAT(ValidateForData(spec, 60000), IsEmpty());
  const StepPlan plan = PlanSteps(spec, 60000);
  EXPECT_EQ(plan.training_steps, 0);
  EXPECT_EQ(plan.NumDraws(), LaplaceSpec{}.draws);
  EXPECT_EQ(StepSizeSchedule(spec, plan, 1).StepSize(0), 0.1);
  spec.burn_in.steps = 1;
  EXPECT_EQ(ValidateForData(spec, 60000).size(), 1u) << "nothing burns in";
  spec.burn_in = {};
  spec.sampler.kind = SgdSpec{};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("num_epochs")) << "nothing would be drawn";
}

TEST(InitSpec, AveragesOfNoStepNeedFilesOfDraws) {
  JobSpec spec = TrainedJob();
  spec.sampler.kind = SwagSpec{};
  spec.schedule = {StepScale::kLearningRate, ConstantSchedule{0.1}};
  spec.burn_in = {};
  spec.collect = {};
  spec.num_epochs = 0;
  spec.init.model = true;
  EXPECT_THAT(InvalidPaths(spec), Contains("num_epochs")) << "one network has no spread";
  spec.init = {.weights = {"state", "one", "two"}};
  EXPECT_THAT(InvalidPaths(spec), IsEmpty());
  const auto file = [](const std::string& name, const std::vector<int64_t>& shape) {
    return StoredModel{.name = "file", .signature = NetworkSignature{.parameters = {{name, "float32", shape}}}};
  };
  const std::vector<StoredModel> files = {file("0.bias", {2}), file("theta/0.bias", {1, 2}),
                                          file("theta/0.bias", {2, 2})};
  const auto violations = ValidateSnapshots(spec, files);
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].path, "init.weights[0]");
  EXPECT_EQ(violations[1].path, "init.weights[1]");
  spec.num_epochs = 1;
  EXPECT_THAT(ValidateSnapshots(spec, files), IsEmpty()) << "it averages its own steps";
}

TEST(InitSpec, NestedRhatNeedsChainsThatShareTheirStarts) {
  JobSpec spec = TrainedJob();
  spec.until = {.nested_rhat_below = 1};
  EXPECT_THAT(InvalidPaths(spec), ElementsAre("until.nested_rhat_below"));
  spec.until = {.nested_rhat_below = 1.01};
  spec.trace_every = 1;
  const Dataset data{.name = "d", .input_shape = {1, 28, 28}, .num_rows = 60000, .targets = Classes{10}};
  const auto why = [&] { return std::string(CheckAgainstData(spec, &data).message()); };
  spec.chains = 6;
  EXPECT_THAT(why(), HasSubstr("until.nested_rhat_below: compares starts that chains share: needs two or more starts"));
  spec.init.weights = {"a", "b", "c"};
  EXPECT_EQ(NumSuperchains(spec, 0), 3);
  EXPECT_EQ(why(), "");
  spec.chains = 5;
  EXPECT_THAT(why(), HasSubstr("the job has 3 starts and 5 chains"));
  spec.init.weights = {"a"};
  EXPECT_THAT(why(), HasSubstr("the job has 1 starts"));
  spec.init = {.theta = {1, 2, 3, 4}};
  EXPECT_EQ(NumSuperchains(spec, 2), 2);
  EXPECT_EQ(NumSuperchains(spec, 4), 0) << "all chains start at one point";
  spec.init.theta = {1};
  EXPECT_EQ(NumSuperchains(spec, 1), 0) << "a number for all coordinates";
  spec.init = {.weights = {"a", "b"}};
  spec.sampler.kind = LaplaceSpec{};
  spec.collect = {};
  spec.trace_every.reset();
  EXPECT_THAT(InvalidPaths(spec), ::testing::Contains("until.nested_rhat_below")) << "has no traces";
}

}  // namespace
}  // namespace chainfleet
