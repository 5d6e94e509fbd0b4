// The memory of a serving worker: thousands of shards over more draws and jobs than its caches hold.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/counted_heap.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/worker_fixture.h"
#include "worker/runtime/session/progress_upload.h"
#include "worker/runtime/shard_server.h"

namespace chainfleet {
namespace {

constexpr int kChains = 50, kWarmUp = 400, kShards = 2000;
constexpr int64_t kNoise = 16 << 10;  // containers that grow by doubling; an entry per shard is far more

// Real draws and predictors: softmax regression of two classes over one number, 4 parameters.
class ServingMemory : public ::testing::Test {
 protected:
  ServingMemory() {
    for (int32_t index = 0; index < kChains; ++index) {
      ProgressUpload upload;
      upload.commit.resume_point.step = 1;
      upload.draws.push_back({1, 1, {{0.5f, -0.5f, 0.25f, 1.0f / static_cast<float>(index + 1)}}});
      const ProgressUpload encoded = EncodeUpload(
          {"store", {{"job", index}, 1}, {DrawKind::kTheta}, {{"theta", {4}, 0, 1}}, 0, FirstParentDigest()}, upload);
      chains_.push_back({{"job", index}, {*encoded.commit.segment}, 0, 1});
      server_.blobs[encoded.commit.segment->object.name] = *encoded.segment_bytes;
    }
  }

  // Shard `i`: from a job of its own, with two of the chains, sometimes one of them lost; or cancelled.
  void Serve(int i) {
    auto plan = std::make_shared<PredictPlan>();
    plan->job = "job-" + std::to_string(i);
    plan->model.kind = BuiltinModel{"softmax_regression", {}};
    plan->input_shape = {1};
    plan->targets = Classes{2};
    ShardRequest request;
    request.shard_id = static_cast<uint64_t>(i);
    request.plan = plan;
    request.chains = {chains_[i % kChains], chains_[(7 * i + 1) % kChains]};
    if (i % 4 == 1) request.chains[1].segments[0].object.sha256 = "not that of its bytes, " + std::to_string(i);
    request.kinds = {DrawKind::kTheta};
    request.inputs = std::make_shared<InputTensor>(InputTensor{InputType::kFloat32, {1, 1}, std::string(4, '\0')});
    request.members = i % 4 == 2;
    request.trace_id = "request-" + std::to_string(i);
    bool served = false;
    shards_.Submit(std::move(request), [&](const auto& result) { served = result.ok() == (i % 4 != 3); });
    if (i % 4 == 3) shards_.Cancel(static_cast<uint64_t>(i));
    do {
      executor_.RunUntilIdle();
    } while (shards_.ServeOne());
    executor_.RunUntilIdle();
    EXPECT_TRUE(served) << i;
    observer_.shards.clear();
  }

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  FakeCoordinator server_{&executor_};
  CountingObserver observer_;
  ObjectFetcher fetcher_{&server_, &executor_, RngKey{1}};
  InputCache inputs_{&fetcher_, &executor_, {&executor_, [](const auto&) { return absl::OkStatus(); }}};
  DrawCache draws_{&fetcher_, &executor_, /*capacity_bytes=*/8 << 10};
  ShardServer shards_{[](auto plan, auto module) { return Predictor::Create(plan, "cpu", module); },
                      &draws_,
                      &inputs_,
                      &executor_,
                      &clock_,
                      &observer_};
  std::vector<ChainDraws> chains_;
};

TEST_F(ServingMemory, StaysFlatOverShardsOfMoreThanTheCachesHold) {
  for (int i = 0; i < kWarmUp; ++i) Serve(i);
  const int64_t before = testing::HeldBytes();
  for (int i = kWarmUp; i < kWarmUp + kShards; ++i) Serve(i);
  EXPECT_LT(testing::HeldBytes() - before, kNoise);
  EXPECT_GT(draws_.counts().misses, kShards) << "the cache held all";
}

}  // namespace
}  // namespace chainfleet
