// This test counts on a fake GPU what one step of a batch of chains costs, and holds it to a table. More of anything is
// slower on every GPU: whoever needs more, or has brought it down, changes the table.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>

#include "tests/support/fake_cuda/fake_gpu.h"
#include "tests/support/network_chains.h"
#include "tests/support/synthetic_dataset.h"

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

class StepBudget : public ::testing::TestWithParam<Budget> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }

  static std::unique_ptr<ChainBatch> Batch() {
    const auto data = SyntheticImages(64, {3, 32, 32});
    const auto plan = NetworkPlan({GetParam().model}, {EmcmcSpec{1e-4}}, *data);
    plan->spec.prior.kind = GaussianPrior{5};
    plan->spec.batch_size = 4;
    plan->spec.num_steps = 1000;
    plan->spec.chains = kChains;
    return BatchOf(plan, data, "cuda:0", kChains);
  }

  static Counts CountStep(ChainBatch* batch) {
    static const auto counts = reinterpret_cast<decltype(&FakeGpuCounts)>(dlsym(RTLD_DEFAULT, "FakeGpuCounts"))();
    *counts = {};
    EXPECT_TRUE(batch->Step().ok());
    return *counts;
  }
};

TEST_P(StepBudget, IsKept) {
  const auto batch = Batch();
  for (int step = 0; step < 3; ++step) CountStep(batch.get());  // the first measures the chains, too
  EXPECT_EQ(CountStep(batch.get()), GetParam().counts);
}

// Narrow: counts do not depend on widths. {operators, launches, allocations, copies, blocking}.
INSTANTIATE_TEST_SUITE_P(Networks, StepBudget,
                         ::testing::Values(Budget{{.name = "softmax_regression"}, {28, 2, 23, 3, 2}},
                                           Budget{{.name = "mlp", .hidden = {8, 6}}, {48, 2, 35, 3, 2}},
                                           Budget{{.name = "lenet5", .width = 0.25}, {70, 2, 49, 3, 2}},
                                           Budget{{.name = "cnn5", .width = 0.125}, {68, 2, 46, 3, 2}},
                                           Budget{{.name = "resnet20-frn", .width = 0.25}, {859, 2, 660, 3, 2}},
                                           Budget{{.name = "resnet18", .width = 0.0625}, {282, 2, 132, 3, 2}},
                                           Budget{{.name = "vgg16-bn", .width = 0.0625}, {242, 2, 130, 3, 2}},
                                           Budget{{.name = "wideresnet28x10", .width = 0.0125}, {420, 2, 191, 3, 2}}),
                         [](const auto& info) { return NameOf(info.param.model.name); });

}  // namespace
}  // namespace chainfleet
