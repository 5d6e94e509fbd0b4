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

// The operators of the gradients of `chains` chains.
int64_t CountGradients(const ExportedFile& file, const Data& data, ChainBatching batching, int64_t chains) {
  const auto loaded =
      ExportedNetwork::Load(ExportedModelOf(file.Read()), file.input_shape, file.outputs, at::Device(at::kCUDA, 0));
  CHAINFLEET_CHECK(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ((*loaded)->TakesChains(), file.batches);
  const auto layout = std::make_shared<const Layout>((*loaded)->shape().parameters);
  const auto potential = MakeEagerPotential((*loaded)->shape(), layout, data,
                                            {data->description().normalisation, {}, 25, CategoricalLikelihood(), {}},
                                            Device{0}, batching, *loaded);
  const ThetaArena on_host = RandomTheta(layout, chains);
  ThetaArena theta(layout, Device{0}), gradient(layout, Device{0});
  for (int64_t row = 0; row < chains; ++row) {
    for (ThetaArena* arena : {&theta, &gradient}) {
      arena->AddRow();
      arena->WriteRow(row, on_host.ReadRow(row));
    }
  }
  const std::vector<int64_t> ids = SomeIds(chains, 16, 64);
  std::vector<double> energy(static_cast<size_t>(chains));
  const int64_t before = fake_cuda::GpuCounts().operators;
  potential->Evaluate(theta, {ids.data(), 16}, &gradient, energy.data());
  return fake_cuda::GpuCounts().operators - before;
}

TEST_P(ExportedChains, TakeAsManyOperatorsAsOneChain) {
  const auto count = [&](ChainBatching batching, int64_t chains) {
    return CountGradients(GetParam(), data_, batching, chains);
  };
  const int64_t together = count(ChainBatching::kTogether, 8);
  EXPECT_GE(count(ChainBatching::kApart, 8), 4 * together);
  EXPECT_EQ(count(ChainBatching::kTogether, 2), together);
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
