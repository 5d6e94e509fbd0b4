// Counts the cost of one step of a batch of chains on a fake GPU and compares it with a table. A higher count is slower
// on every GPU. Change the table with the code.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "tests/support/fake_cuda/fake_gpu_calls.h"
#include "tests/support/network_chains.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/tracing/chain_reporter.h"
#include "worker/numerics/tracing/gradient_variance.h"

namespace chainfleet {

namespace fake_cuda {

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << "{" << counts.operators << ", " << counts.launches << ", " << counts.allocations << ", "
             << counts.copies << ", " << counts.blocking << "}";
}

}  // namespace fake_cuda

namespace {

using fake_cuda::Counts;

constexpr int kChains = 4;

struct Budget {
  BuiltinModel model;
  Counts counts;
};

std::string NameOf(std::string network) {
  std::ranges::replace(network, '-', '_');
  return network;
}

std::unique_ptr<ChainBatch> SteadyBatch(const ModelSpec& model, const SamplerSpec& sampler) {
  const auto data = SyntheticImages(64, {3, 32, 32});
  const auto plan = NetworkPlan(model, sampler, *data);
  if (sampler.name() != "bsam") plan->spec.prior.kind = GaussianPrior{5};
  plan->spec.batch_size = 4;
  plan->spec.num_steps = 1000;
  if (sampler.posterior_draws() == 0) plan->spec.collect.every_steps = 1000;
  plan->spec.chains = kChains;
  auto batch = BatchOf(plan, data, "cuda:0", kChains);
  for (int step = 0; step < 3; ++step) EXPECT_TRUE(batch->Step().ok());  // the first step also measures the chains
  return batch;
}

// Leaves out the bytes.
Counts CountOf(const std::function<void()>& call) {
  const Counts before = fake_cuda::GpuCounts();
  call();
  const Counts after = fake_cuda::GpuCounts();
  return {after.operators - before.operators, after.launches - before.launches, after.allocations - before.allocations,
          after.copies - before.copies, after.blocking - before.blocking};
}

Counts CountStep(ChainBatch* batch) {
  return CountOf([&] { EXPECT_TRUE(batch->Step().ok()); });
}

class StepBudget : public ::testing::TestWithParam<Budget> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }
};

TEST_P(StepBudget, IsKept) {
  const auto batch = SteadyBatch({GetParam().model}, {EmcmcSpec{1e-4}});
  EXPECT_EQ(CountStep(batch.get()), GetParam().counts);
}

// Narrow: counts do not depend on widths. {operators, launches, allocations, copies, blocking}.
INSTANTIATE_TEST_SUITE_P(Networks, StepBudget,
                         ::testing::Values(Budget{{.name = "softmax_regression"}, {28, 3, 25, 3, 0}},
                                           Budget{{.name = "mlp", .hidden = {8, 6}}, {48, 3, 37, 3, 0}},
                                           Budget{{.name = "lenet5", .width = 0.25}, {70, 3, 51, 3, 0}},
                                           Budget{{.name = "cnn5", .width = 0.125}, {68, 3, 48, 3, 0}},
                                           Budget{{.name = "resnet20-frn", .width = 0.25}, {859, 3, 662, 3, 0}},
                                           Budget{{.name = "resnet18", .width = 0.0625}, {282, 3, 134, 3, 0}},
                                           Budget{{.name = "vgg16-bn", .width = 0.0625}, {242, 3, 132, 3, 0}},
                                           Budget{{.name = "wideresnet28x10", .width = 0.0125}, {420, 3, 193, 3, 0}}),
                         [](const auto& info) { return NameOf(info.param.model.name); });

// Samplers whose step needs no number from the GPU.
class SteadySteps : public ::testing::TestWithParam<SamplerSpec> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }
};

TEST_P(SteadySteps, NeverLeaveTheGpuWithNothingToDo) {
  const LayerList layers = {{FlattenLayer{}}, {LinearLayer{8}}, {DropoutLayer{0.5}}, {ReluLayer{}}, {LinearLayer{}}};
  const bool drops = GetParam().name() == "mc_dropout";  // by itself
  const ModelSpec mlp = {BuiltinModel{.name = "mlp", .hidden = {8, 6}}};
  const auto batch = SteadyBatch(drops ? mlp : ModelSpec{LayeredModel{layers}}, GetParam());
  for (int step = 0; step < 4; ++step) EXPECT_EQ(CountStep(batch.get()).blocking, 0) << step;
}

INSTANTIATE_TEST_SUITE_P(
    Samplers, SteadySteps,
    ::testing::Values(SamplerSpec{SgldSpec{}}, SamplerSpec{EmcmcSpec{1e-4}}, SamplerSpec{EmcmcGibbsSpec{1e-4, 2}},
                      SamplerSpec{SgdSpec{}}, SamplerSpec{SghmcSpec{}},
                      SamplerSpec{SghmcSpec{.scheme = SghmcScheme::kBaoa}}, SamplerSpec{EntropySgdSpec{1e-4, 2, 0.75}},
                      SamplerSpec{BsamSpec{.parts = 4}}, SamplerSpec{SwagSpec{.start_epoch = 0, .draws = 1}},
                      SamplerSpec{McDropoutSpec{.draws = 1}}, SamplerSpec{LaplaceSpec{.draws = 1}}),
    [](const auto& info) { return info.param.name() + "_" + std::to_string(info.index); });

// Draws that are due after the same step share the pass over the data that batch norm's statistics take.
TEST(DrawBudget, CoversOnePassForAllChains) {
  ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok());
  const auto data = SyntheticImages(200, {3, 8, 8});
  const LayerList layers = {{ConvLayer{.out_channels = 2}}, {BatchNormLayer{}}, {ReluLayer{}}, {LinearLayer{}}};
  const auto plan = NetworkPlan({LayeredModel{layers}}, {EmcmcSpec{1e-4}}, *data);
  plan->spec.batch_size = 128;
  plan->spec.chains = kChains;
  const auto batch = BatchOf(plan, data, "cuda:0", kChains);
  ASSERT_TRUE(batch->Step().ok());
  EXPECT_EQ(CountOf([&] { batch->TakeDraw(0); }), (Counts{82, 0, 66, 4, 4}));
  for (int chain = 1; chain < kChains; ++chain) {
    EXPECT_EQ(CountOf([&] { batch->TakeDraw(chain); }), (Counts{0, 0, 0, 2, 2})) << "both kinds, and no pass";
  }
}

TEST(MeasuringBudget, HasFewBatchesForLargeNetworks) {
  EXPECT_EQ(NumVarianceBatches(7'850, Device{0}), 64);
  EXPECT_EQ(NumVarianceBatches(272'474, Device{0}), 15);
  EXPECT_EQ(NumVarianceBatches(11'173'962, Device{0}), 8);
  EXPECT_EQ(NumVarianceBatches(11'173'962, Device()), 64);
}

// Chains of a large network are measured in turn, so that a step waits only for a few of them.
TEST(MeasuringBudget, HasFewChainsOfALargeNetworkAtATime) {
  constexpr int64_t kResnet18 = 11'173'962, kSteps = 1000;
  std::map<int64_t, int> chains;  // by the step before which they are measured first
  for (int32_t index = 0; index < 32; ++index) ++chains[FirstReportStep(index, kResnet18, Device{0}, kSteps)];
  EXPECT_EQ(chains.size(), 10u);
  for (const auto& [step, count] : chains) EXPECT_LE(count, 4) << step;
  EXPECT_EQ(FirstReportStep(31, kResnet18, Device{0}, 1), 0) << "the only step";
  EXPECT_EQ(FirstReportStep(31, 272'474, Device{0}, kSteps), 0) << "a small network";
  EXPECT_EQ(FirstReportStep(31, kResnet18, Device(), kSteps), 0) << "a CPU";
}

class FirstStepBudget : public ::testing::TestWithParam<Budget> {};

// The first step measures gradient variance and curvature before it moves. The data set is so large that each gradient
// is of one batch.
TEST_P(FirstStepBudget, IsKept) {
  ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok());
  const auto data = SyntheticImages(600, {3, 32, 32});
  const auto plan = NetworkPlan({GetParam().model}, {EmcmcSpec{1e-4}}, *data);
  plan->spec.batch_size = 4;
  plan->spec.chains = kChains;
  const auto batch = BatchOf(plan, data, "cuda:0", kChains);
  const Counts counts = CountOf([&] { ASSERT_TRUE(batch->Step().ok()); });
  EXPECT_LE(counts.operators, GetParam().counts.operators);
  EXPECT_LE(counts.launches, GetParam().counts.launches);
  EXPECT_LE(counts.blocking, GetParam().counts.blocking);
}

// At most: rounding may let the curvature settle before its last iteration. {operators, launches, -, -, blocking}.
INSTANTIATE_TEST_SUITE_P(Networks, FirstStepBudget,
                         ::testing::Values(Budget{{.name = "lenet5", .width = 0.25}, {6934, 839, 0, 0, 104}},
                                           Budget{{.name = "resnet18", .width = 0.0625}, {27494, 839, 0, 0, 104}},
                                           Budget{{.name = "resnet20-frn", .width = 0.25}, {83463, 839, 0, 0, 104}}),
                         [](const auto& info) { return NameOf(info.param.model.name); });

}  // namespace
}  // namespace chainfleet
