// Tests the order of shards and chains on one device.
#include "worker/runtime/device_loop.h"

#include "tests/support/fake_chain_batch.h"
#include "tests/worker/runtime/shard_server_fixture.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;

// Runs next to chains that always have a step of 100 ms to do.
class ShardsBesideChains : public ShardServerTest {
 protected:
  void SetUp() override {
    script_.total_steps = 100000;
    auto& chain = server_.chains[{"job-b", 0}];
    chain.plan = AnalyticPlan("job-b", 1);
    chain.epoch = 1;
    held_.Add({{{"job-b", 0}, 1, chain.plan, {}}, "store"}, LeaseDeadline(clock_.Monotonic(), absl::Hours(9)));
    device_.RunOnce();
    executor_.RunUntilIdle();
  }
  std::vector<ChainDraws> Chains(int32_t count) {
    std::vector<ChainDraws> chains;
    for (int32_t i = 0; i < count; ++i) chains.push_back(Chain(i));
    return chains;
  }
  // Returns the steps of the chains until `shards` shards have their results.
  int64_t StepsUntil(size_t results) {
    executor_.RunUntilIdle();
    const int64_t before = script_.steps_taken;
    while (results_.size() < results) {
      EXPECT_TRUE(device_.RunOnce());
      executor_.RunUntilIdle();
    }
    return script_.steps_taken - before;
  }

  HeldChains held_{&clock_};
  DrawUploader uploader_{{{.worker = "w0"}, "w0-1", 1 << 20, RngKey{1}}, &server_, &held_, &executor_, &observer_};
  ChainLoader loader_{&fetcher_, &inputs_, &executor_};
  FakeBatchScript script_;
  DeviceLoop device_{{0.25},
                     [this](auto, auto) -> absl::StatusOr<std::unique_ptr<ChainBatch>> {
                       return std::make_unique<FakeChainBatch>(&script_, &clock_, 2);
                     },
                     &held_,
                     &uploader_,
                     &loader_,
                     &shards_,
                     &observer_,
                     &clock_};
};

// A quarter of the device: between two units of 100 ms, chains get 300 ms.
TEST_F(ShardsBesideChains, ServingTakesNoMoreThanItsShare) {
  Submit(Request(1, Chains(20)));
  EXPECT_NEAR(static_cast<double>(StepsUntil(1)), 3 * 40, 3);
  EXPECT_EQ(observer_.shard_units, 40);
}

TEST_F(ShardsBesideChains, AnEvaluationTakesNoMoreThanTheShareEither) {
  script_.step_time = absl::Milliseconds(1);
  Submit(OfRows(Request(1, Chains(5)), ShardServer::kUnitPasses));
  const absl::Duration began = clock_.Monotonic();
  StepsUntil(1);
  const absl::Duration computed = 10 * SlowRun::kDraws * absl::Milliseconds(1);
  EXPECT_NEAR(absl::FDivDuration(clock_.Monotonic() - began, computed), 4, 0.2);
}

// "predictions beside an evaluation: at most 3 times": a prediction does not pay for the time of an evaluation.
TEST_F(ShardsBesideChains, APredictionDoesNotWaitForAnEvaluationsDebt) {
  script_.step_time = absl::Milliseconds(1);  // pays little of it
  Submit(OfRows(Request(1, Chains(5)), ShardServer::kUnitPasses));
  executor_.RunUntilIdle();
  device_.RunOnce();  // a part of the evaluation, and a step
  Submit(Request(2, Chains(1), 1));
  EXPECT_LE(StepsUntil(1), 1);
  EXPECT_THAT(Served(), ElementsAre(2u));
}

}  // namespace
}  // namespace chainfleet
