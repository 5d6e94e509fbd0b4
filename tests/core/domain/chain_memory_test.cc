#include "core/domain/chain_memory.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "core/base/limits.h"

namespace chainfleet {
namespace {

constexpr int64_t kLenet5 = 61706;  // parameters

JobSpec Lenet5(SamplerKind sampler) {
  JobSpec spec;
  spec.model.kind = BuiltinModel{"lenet5", {}};
  spec.sampler.kind = std::move(sampler);
  spec.batch_size = 1;
  return spec;
}

int64_t BytesOf(const JobSpec& spec) { return EstimateChainBytes(spec, {1, 28, 28}, 10); }

TEST(ChainMemory, GrowsWithTheBatch) {
  JobSpec spec = Lenet5(SgldSpec{});
  const int64_t one = BytesOf(spec);
  EXPECT_GT(one, 4 * 4 * kLenet5);
  spec.batch_size = 128;
  EXPECT_GT(BytesOf(spec), one + 127 * 2 * 4 * 28 * 28);
}

TEST(ChainMemory, CountsTheDeviationsOfSwagTwice) {
  const int64_t few = BytesOf(Lenet5(SwagSpec{.max_rank = 5})), more = BytesOf(Lenet5(SwagSpec{.max_rank = 25}));
  EXPECT_EQ(more - few, 20 * 2 * 4 * kLenet5);
  EXPECT_GT(few, BytesOf(Lenet5(SgldSpec{})));
}

TEST(ChainMemory, CountsTheCurvatureOfLaplace) {
  EXPECT_GT(BytesOf(Lenet5(LaplaceSpec{})), BytesOf(Lenet5(SgldSpec{})));
}

TEST(ChainMemory, CountsTheNumbersThatASamplerKeepsForEachExample) {
  constexpr int64_t kExamples = 1000;
  const auto of_examples = [](const JobSpec& spec, const StoredModel* stored = nullptr) {
    return EstimateChainBytes(spec, {1, 28, 28}, 10, stored, kExamples) -
           EstimateChainBytes(spec, {1, 28, 28}, 10, stored);
  };
  for (const SamplerKind& sampler : {SamplerKind(RandomWalkSpec{}), SamplerKind(MalaSpec{}), SamplerKind(HmcSpec{}),
                                     SamplerKind(TemperedMhSpec{})}) {
    EXPECT_EQ(of_examples(Lenet5(sampler)), 16 * kExamples) << sampler.index();
  }
  EXPECT_EQ(of_examples(Lenet5(MileSpec{})), 8 * kExamples);
  EXPECT_EQ(of_examples(Lenet5(MileSpec{.validation_fraction = 0})), 0);
  EXPECT_EQ(of_examples(Lenet5(PenaltyMhSpec{})), 0);
  EXPECT_EQ(of_examples(Lenet5(SgldSpec{})), 0);
  JobSpec module = Lenet5(MalaSpec{});
  module.model.kind = StoredNetworkModel{"mine", ModelFormat::kTorchScript};
  const StoredModel stored{.name = "mine", .object = {"module-0", 1'000'000, ""}};
  EXPECT_EQ(of_examples(module, &stored), 16 * kExamples);
}

TEST(ChainMemory, CountsATorchScriptModuleByItsSizeAndAPt2FileByItsParameters) {
  JobSpec spec = Lenet5(SgldSpec{});
  spec.model.kind = StoredNetworkModel{"mine", ModelFormat::kTorchScript};
  StoredModel stored{.name = "mine", .object = {"module-0", 1'000'000, ""}};
  EXPECT_GE(EstimateChainBytes(spec, {1, 28, 28}, 10, &stored), 4'000'000);
  spec.model.kind = StoredNetworkModel{"mine"};
  stored.signature = NetworkSignature{.inputs = {{"x", "float32", {1, 28, 28}}},
                                      .output = {"y", "float32", {10}},
                                      .parameters = {{"w", "float32", {10, 784}}}};
  EXPECT_EQ(EstimateChainBytes(spec, {1, 28, 28}, 10, &stored), 9 * 7840 * 4 + 2 * 4 * spec.batch_size * 784);
  stored.signature->activation_bytes_per_row = 400;
  EXPECT_EQ(EstimateChainBytes(spec, {1, 28, 28}, 10, &stored), 9 * 7840 * 4 + 2 * 4 * spec.batch_size * (784 + 100));
  spec.model.sample = {"*"};
  EXPECT_EQ(EstimateChainBytes(spec, {1, 28, 28}, 10, &stored), 9 * 7840 * 4 + 2 * 4 * spec.batch_size * 784)
      << "put by an older server";
}

TEST(ChainMemory, CountsTheActivationsFromTheFirstSampledParameterOn) {
  JobSpec spec = Lenet5(SgldSpec{});
  spec.model.kind = StoredNetworkModel{"mine"};
  const StoredModel stored{.name = "mine",
                           .signature = NetworkSignature{.inputs = {{"x", "float32", {6}}},
                                                         .output = {"y", "float32", {10}},
                                                         .parameters = {{"0.w", "float32", {8, 6}, 4000},
                                                                        {"1.w", "float32", {8, 8}, 400},
                                                                        {"2.w", "float32", {10, 8}, 40}},
                                                         .activation_bytes_per_row = 5000}};
  const auto activations = [&](const std::vector<std::string>& sample, int64_t parameters) {
    spec.model.sample = sample;
    return EstimateChainBytes(spec, {6}, 10, &stored) - 9 * 4 * parameters - 2 * 4 * 6;
  };
  EXPECT_EQ(activations({}, 48 + 64 + 80), 2 * 5000);
  EXPECT_EQ(activations({"2.*"}, 80), 2 * 40);
  EXPECT_EQ(activations({"2.*", "1.*"}, 64 + 80), 2 * 400);
  EXPECT_EQ(activations({"*"}, 48 + 64 + 80), 2 * 4000);
}

// "submit should say how many bytes a job will store."
TEST(StoredBytes, AreThoseOfTheDrawsThatAreKept) {
  JobPlan plan;
  plan.spec = Lenet5(EmcmcSpec{});
  plan.spec.num_steps = 1000;
  plan.spec.chains = 3;
  plan.spec.collect.kinds = {DrawKind::kTheta, DrawKind::kThetaA};
  plan.dataset = Dataset{.name = "images", .input_shape = {1, 28, 28}, .num_rows = 100, .targets = Classes{10}};
  EXPECT_EQ(EstimateDrawBytes(plan), 2 * 4 * kLenet5);
  EXPECT_EQ(EstimateStoredBytes(plan), 3 * 1000 * 2 * 4 * kLenet5) << "collect is left out: every step is kept";
  plan.spec.retention.keep_last = 10;
  EXPECT_EQ(EstimateStoredBytes(plan), 3 * 10 * 2 * 4 * kLenet5);
  plan.spec.retention.keep_last = std::numeric_limits<int64_t>::max();
  plan.spec.num_steps = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_EQ(EstimateStoredBytes(plan), std::numeric_limits<int64_t>::max());
}

TEST(StoredBytes, AreTheSameForACallerThatKnowsTheNumberOfParameters) {
  JobPlan plan;
  plan.spec = Lenet5(SgldSpec{});
  plan.spec.num_steps = 1000;
  plan.dataset = Dataset{.name = "images", .input_shape = {1, 28, 28}, .num_rows = 100, .targets = Classes{10}};
  EXPECT_EQ(EstimateDrawBytes(plan, kLenet5), EstimateDrawBytes(plan));
  EXPECT_EQ(EstimateStoredBytes(plan, EstimateDrawBytes(plan)), EstimateStoredBytes(plan));
  plan.module = StoredModel{.name = "mine", .object = {"module-0", 1'000'000, ""}};
  EXPECT_GE(EstimateDrawBytes(plan), 1'000'000);
  EXPECT_EQ(EstimateDrawBytes(plan, 0), EstimateDrawBytes(plan)) << "only a worker knows the parameters of a module";
}

TEST(ChainMemory, BeyondAllBoundsIsTheLargestNumberAndRefused) {
  JobSpec spec = Lenet5(SwagSpec{.max_rank = 1000});
  LayerList layers(limits::kMaxLayers - 1, {LinearLayer{65536}});
  layers.push_back({LinearLayer()});
  spec.model.kind = LayeredModel{layers};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
  spec.num_steps = 100;
  spec.batch_size = int64_t{1} << 40;
  const Dataset dataset{
      .name = "large", .input_shape = {3, 25000, 25000}, .num_rows = int64_t{1} << 40, .targets = Classes{10}};
  EXPECT_EQ(EstimateChainBytes(spec, dataset.input_shape, 10), std::numeric_limits<int64_t>::max());
  const absl::Status refused = CheckAgainstData(spec, &dataset);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_NE(std::string(refused.message()).find("GiB"), std::string::npos) << refused;
}

}  // namespace
}  // namespace chainfleet
