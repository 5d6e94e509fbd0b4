// Chains of exported networks on a fake GPU: all in one call of each operator.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/device_chains.h"
#include "tests/support/exported_files.h"
#include "tests/support/fake_cuda/fake_gpu_calls.h"
#include "tests/support/network_fixture.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

class ExportedChains : public NeedsGpu, public ::testing::WithParamInterface<ExportedFile> {
 protected:
  const Data data_ = GetParam().Data(64);
};

TEST_P(ExportedChains, MatchTheCpu) {
  const SecondGpu gpu;
  const auto plan = NetworkPlan({StoredNetworkModel{"mine"}}, {EmcmcSpec{1e-4}}, *data_);
  plan->spec.temperature = 1e-4;
  plan->spec.num_steps = 4;
  const auto file = FileOf(GetParam().Read());
  const auto show = [&](const std::string& device) { return ChainsOnTheWay(plan, data_, {device}, file).Run(); };
  ExpectSameWay(show("cpu"), show(gpu.name()));
}

struct Gradients {
  int64_t operators = 0;
  std::vector<double> energy;
  std::vector<std::vector<float>> of_chains;
};

// The gradients of `chains` chains, with the operators that they take.
Gradients GradientsOf(const std::shared_ptr<const StoredNetwork>& network, const Data& data, ChainBatching batching,
                      int64_t chains) {
  const auto layout = std::make_shared<const Layout>(network->shape().parameters);
  const auto potential = MakeEagerPotential(network->shape(), layout, data,
                                            {data->description().normalisation, {}, 25, CategoricalLikelihood(), {}},
                                            Device{0}, batching, network);
  const ThetaArena on_host = RandomTheta(layout, chains);
  ThetaArena theta(layout, Device{0}), gradient(layout, Device{0});
  for (int64_t row = 0; row < chains; ++row) {
    for (ThetaArena* arena : {&theta, &gradient}) {
      arena->AddRow();
      arena->WriteRow(row, on_host.ReadRow(row));
    }
  }
  const std::vector<int64_t> ids = SomeIds(chains, 16, 64);
  Gradients found{.energy = std::vector<double>(static_cast<size_t>(chains))};
  const int64_t before = fake_cuda::GpuCounts().operators;
  potential->Evaluate(theta, {ids.data(), 16}, &gradient, found.energy.data());
  found.operators = fake_cuda::GpuCounts().operators - before;
  for (int64_t row = 0; row < chains; ++row) found.of_chains.push_back(gradient.ReadRow(row));
  return found;
}

TEST_P(ExportedChains, TakeAsManyOperatorsAsOneChain) {
  const auto loaded = ExportedNetwork::Load(ExportedModelOf(GetParam().Read()), GetParam().input_shape,
                                            GetParam().outputs, at::Device(at::kCUDA, 0));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->TakesChains(), GetParam().batches);
  const auto count = [&](ChainBatching batching, int64_t chains) {
    return GradientsOf(*loaded, data_, batching, chains).operators;
  };
  const int64_t together = count(ChainBatching::kTogether, 8);
  EXPECT_GE(count(ChainBatching::kApart, 8), 4 * together);
  EXPECT_EQ(count(ChainBatching::kTogether, 2), together);
}

TEST_P(ExportedChains, ShareTheFeaturesOfAFrozenTrunk) {
  const auto head = GetParam().LoadHead("cuda:0");
  ASSERT_TRUE(head->TakesChains());  // its trial does not count
  const auto together = GradientsOf(head, data_, ChainBatching::kTogether, 8),
             apart = GradientsOf(head, data_, ChainBatching::kApart, 8),
             two = GradientsOf(head, data_, ChainBatching::kTogether, 2),
             whole = GradientsOf(std::make_shared<const WithoutFeatures>(head), data_, ChainBatching::kTogether, 8);
  ASSERT_TRUE(head->HasFeatures());
  EXPECT_LT(together.operators, whole.operators);
  EXPECT_EQ(two.operators, together.operators);
  for (size_t c = 0; c < 8; ++c) {
    for (const Gradients& other : {apart, whole}) {
      EXPECT_NEAR(together.energy[c], other.energy[c], 1e-5 * std::abs(other.energy[c])) << c;
      EXPECT_LT(RelativeDistance(together.of_chains[c], other.of_chains[c]), 1e-4) << c;
    }
  }
}

TEST_P(ExportedChains, MatchTheCpuOverFeatures) {
  const SecondGpu gpu;
  const auto plan =
      NetworkPlan({StoredNetworkModel{"mine"}, {}, {HeadOf(GetParam().Load()->shape())}}, {SgldSpec{}}, *data_);
  plan->spec.temperature = 1e-4;
  const auto file = FileOf(GetParam().Read());
  const auto show = [&](const std::string& device) { return ChainsOnTheWay(plan, data_, {device}, file).Run(); };
  ExpectSameWay(show("cpu"), show(gpu.name()));
}

// Without those whose operators have no rule for batches.
std::vector<ExportedFile> Networks() {
  std::vector<ExportedFile> files = ExportedFiles();
  std::erase_if(files, [](const ExportedFile& file) { return !file.batches; });
  return files;
}

INSTANTIATE_TEST_SUITE_P(Networks, ExportedChains, ::testing::ValuesIn(Networks()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace chainfleet
