// Tests the memory of a fake GPU: the memory that a split batch returns, and the worker's report of it.
#include "worker/numerics/arena/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/support/fake_coordinator.h"
#include "tests/support/fake_cuda/fake_gpu_calls.h"
#include "tests/support/network_chains.h"
#include "tests/support/synthetic_dataset.h"
#include "tests/support/tight_batch.h"
#include "tests/support/worker_fixture.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {
namespace {

int64_t BytesInUse() { return fake_cuda::kMemoryBytes - FreeDeviceBytes({0}).value(); }

class DeviceMemory : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }

  std::shared_ptr<JobPlan> Plan(int32_t chains) const {
    auto plan = NetworkPlan({BuiltinModel{"mlp", {4}}}, {EmcmcSpec{1e-4}}, *data_);
    plan->spec.chains = chains;
    plan->spec.num_steps = 10;
    return plan;
  }

  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(4000);
  const int64_t data_bytes_ = static_cast<int64_t>(data_->input_bytes().size());
};

TEST_F(DeviceMemory, ABatchThatIsSplitTakesLessAndUploadsNoDataAgain) {
  constexpr int32_t kChains = 9;  // arenas of 10 rows; then of 5 and of 4
  const int64_t before_all = BytesInUse();
  FakeClock clock;
  ManualExecutor executor{&clock};
  FakeCoordinator server{&executor};
  std::vector<size_t> refused;
  const auto plan = Plan(kChains);
  const ChainBatchFactory factory = [&](auto, auto) -> absl::StatusOr<std::unique_ptr<ChainBatch>> {
    CHAINFLEET_ASSIGN_OR_RETURN(auto batch, ChainBatch::Create(plan, data_, "cuda:0"));
    return std::make_unique<TightBatch>(std::move(batch), 5, 4, &refused);
  };
  {
    FakeWorker worker(&server, &executor, &clock, factory, {.slots = 16});
    auto without_data = std::make_shared<JobPlan>(*plan);
    without_data->dataset.reset();  // the factory has it
    server.AddChains(without_data, kChains);
    worker.session.Start();
    int64_t whole = 0;
    fake_cuda::Counts counts = fake_cuda::GpuCounts();
    const auto one_turn = [&] {
      executor.RunUntilIdle();
      if (!worker.device.RunOnce()) executor.RunFor(absl::Milliseconds(50));
    };
    for (int turn = 0; turn < 100 && refused.empty(); ++turn) {
      whole = BytesInUse();
      counts = fake_cuda::GpuCounts();
      one_turn();
    }
    ASSERT_EQ(refused, std::vector<size_t>{kChains});
    EXPECT_GT(whole, data_bytes_);
    EXPECT_EQ(fake_cuda::GpuCounts().emptied, counts.emptied + 1);
    EXPECT_LT(fake_cuda::GpuCounts().copied_bytes - counts.copied_bytes, data_bytes_)
        << "the data set was uploaded once more";
    for (int turn = 0; turn < 4; ++turn) one_turn();  // both halves have the buffers of a step again
    EXPECT_LT(BytesInUse(), whole);
    EXPECT_EQ(refused.size(), 1u);
    RunWorker(&worker, &executor, &clock, absl::Seconds(20));
    for (int32_t i = 0; i < kChains; ++i) {
      const ChainId chain{plan->job, i};
      EXPECT_EQ(server.chains[chain].state, ChainState::kSucceeded) << i;
    }
    executor.DropAll();
  }
  EXPECT_LT(BytesInUse() - before_all, data_bytes_) << "with its batches the data set has gone";
}

TEST_F(DeviceMemory, AChainReportsItsBytes) {
  const auto bytes_of = [&](const char* device, int chains) {
    return BatchOf(Plan(chains), data_, device, chains)->Step().value().front().stats.device_bytes;
  };
  const int64_t row = 4 * BatchOf(Plan(1), data_, "cpu", 0)->parameters().back().offset;  // approximately
  EXPECT_GE(bytes_of("cuda:0", 1), 3 * row) << "theta, theta_a and the gradient";
  EXPECT_LT(bytes_of("cuda:0", 8), 30 * row) << "the data set is all chains'";
  EXPECT_EQ(bytes_of("cpu", 1), 0);
}

TEST_F(DeviceMemory, AGpuReportsItsFreeBytes) {
  const int64_t before = FreeDeviceBytes({0}).value();
  const auto batch = BatchOf(Plan(1), data_, "cuda:0", 1);
  EXPECT_LE(FreeDeviceBytes({0}).value(), before - data_bytes_);
  EXPECT_EQ(FreeDeviceBytes({}).value(), 0);
}

}  // namespace
}  // namespace chainfleet
