// Every built-in network at its full width: its potential is made and a chain starts; no step is taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/support/network_fixture.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

class FullSizeNetworks : public ::testing::TestWithParam<std::string> {};

TEST_P(FullSizeNetworks, StartAChainInARowOfTheirOwnSize) {
  const bool texts = GetParam() == "text-transformer";
  const std::vector<int64_t> input_shape = texts ? std::vector<int64_t>{20} : std::vector<int64_t>{3, 32, 32};
  const auto data = SyntheticImages(8, input_shape);
  auto plan = std::make_shared<JobPlan>();
  plan->job = "full-aaaaaa";
  JobSpec& spec = plan->spec;
  spec.name = "full";
  BuiltinModel model{GetParam(), {}};
  if (texts) model.vocabulary = 256;
  spec.model.kind = model;
  spec.dataset = "synthetic";
  spec.sampler.kind = SgldSpec{};
  spec.schedule.kind = ConstantSchedule{0.1};
  spec.batch_size = 4;
  spec.num_epochs = 1;
  plan->dataset = data->description();
  plan->normalisation = data->description().normalisation;
  const NetworkShape network = *InferNetwork(spec.model, input_shape, 10);
  const int64_t parameters = NumParameters(network.parameters);
  const auto potential = MakeNetworkPotential(*plan, data, Device());
  ASSERT_TRUE(potential.ok()) << potential.status();
  EXPECT_EQ((*potential)->layout()->num_parameters(), parameters);
  ThetaArena theta((*potential)->layout(), Device());
  theta.AddRow();
  EXPECT_GE(theta.row_stride(), parameters);

  const auto batch = ChainBatch::Create(plan, data, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
  // Offsets of statistics follow those of the parameters.
  EXPECT_EQ(NumParameters((*batch)->parameters()),
            network.statistics.empty() ? parameters : NumParameters(network.statistics));
  EXPECT_GE(static_cast<int64_t>((*batch)->SaveResumePoint(0).size()), 4 * parameters);
}

// In resnet18's first convolution, 64 maps of 32 x 32 for each of 128 examples, 256 chains would have 2^31 values.
TEST(FullSizeNetworks, NoTensorOfABatchHasTooManyElementsForAGpu) {
  const auto most = [](const char* name, const std::vector<int64_t>& input_shape, int64_t batch_size) {
    return MostChainsTogether(*InferNetwork({BuiltinModel{name, {}}}, input_shape, 10), batch_size);
  };
  EXPECT_EQ(most("resnet18", {3, 32, 32}, 128), 255);
  EXPECT_EQ(most("lenet5", {1, 28, 28}, 128), 3566);               // 6 maps of 28 x 28
  EXPECT_EQ(most("resnet18", {3, 32, 32}, 1), 910);                // 512 x 512 x 3 x 3 weights
  EXPECT_EQ(most("softmax_regression", {1, 28, 28}, 128), 21399);  // the images
  EXPECT_EQ(most("resnet18", {3, 32, 32}, int64_t{1} << 20), 1);
}

std::vector<std::string> AllNames() { return absl::StrSplit(BuiltinNames(), ", "); }

INSTANTIATE_TEST_SUITE_P(Builtins, FullSizeNetworks, ::testing::ValuesIn(AllNames()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace chainfleet
