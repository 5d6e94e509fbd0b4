// The error of a call whose shards a bound of the server refuses.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/serving/shard_queue.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

// The server has no room for the answers of its only worker.
class PortWithoutRoom final : public ShardPort {
 public:
  std::vector<ServingWorker> Workers() override { return {{.id = "a"}}; }
  void Send(const std::string&, const ShardRequest&, std::function<void(absl::StatusOr<ShardResult>)> done) override {
    ++sent;
    done(BoundReached("shard_result_bytes", "no room for results", "QUEUE_FULL"));
  }
  void Cancel(const std::string&, uint64_t) override {}

  int sent = 0;
};

TEST(ShardRefusal, ABoundOfTheServerIsNotTakenForFullWorkers) {
  FakeClock clock;
  ManualExecutor executor(&clock);
  PortWithoutRoom port;
  ShardQueue queue(&clock, &executor, &port);
  ShardRequest request;
  request.plan = std::make_shared<PredictPlan>();
  request.inputs = std::make_shared<InputTensor>();
  std::optional<absl::Status> answer;
  queue.Submit(std::move(request), "a", absl::InfiniteDuration(), PredictPriority::kNormal,
               [&](const absl::StatusOr<ShardResult>& result) { answer = result.status(); });
  executor.RunFor(absl::Seconds(10));
  EXPECT_EQ(port.sent, limits::kShardAttempts);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(ReasonOf(*answer), "QUEUE_FULL");
  EXPECT_EQ(BoundOf(*answer), "shard_result_bytes");
  EXPECT_EQ(RetryAfterOf(*answer), absl::Seconds(1));
}

}  // namespace
}  // namespace chainfleet
