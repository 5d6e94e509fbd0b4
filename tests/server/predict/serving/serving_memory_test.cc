// The server's memory while it serves: thousands of requests of every kind, none of which leaves memory behind.
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "server/predict/serving/batcher.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/counted_heap.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using Mood = testing::FakeShardPort::Mood;

constexpr int kWarmUp = 400, kRequests = 2000;
constexpr int64_t kNoise = 16 << 10;  // containers that grow by doubling; an entry per request is far more

class ServingMemory : public ::testing::Test {
 protected:
  ServingMemory() {
    port_.workers = {{"a", Mood::kAnswers}, {"b", Mood::kAnswers}};
    router_.emplace(&clock_, &executor_, &catalog_, &queue_);
    batcher_.emplace(&clock_, &executor_, &*router_, &statistics_, BatchLimits());
  }

  // Request `i`: for draws that no other request uses, in one of several ways.
  void Ask(int i) {
    PredictQuery query{{"job", 0, 0, false}, {}, 0};
    query.draws.max_draws = 1 + i;
    query.trace_id = "request-" + std::to_string(i);
    query.members = i % 8 == 1;
    query.anytime = i % 8 == 2;
    query.min_draws = i % 8 == 3 ? 1 : 0;
    port_.workers["b"] = i % 8 == 4   ? Mood::kLosesShards
                         : i % 8 == 5 ? Mood::kSendsNonsense
                         : i % 8 == 6 ? Mood::kHangs
                                      : Mood::kAnswers;
    bool answered = false;
    const auto cancel = batcher_->Predict(std::move(query), testing::NumberedRows(1 + i % 3), absl::Seconds(2),
                                          PredictPriority::kNormal, [&](const auto&) { answered = true; });
    if (i % 8 == 7) cancel();
    executor_.RunFor(absl::Seconds(3));
    EXPECT_TRUE(answered) << i;
    port_.Break("b");
    executor_.RunUntilIdle();
    port_.sent.clear();
    port_.cancelled.clear();
  }

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  testing::FakeDrawCatalog catalog_{&executor_, {2, 3}, Classes{3}};
  testing::FakeShardPort port_{&executor_, testing::ArbitraryProbabilities(3)};
  ShardQueue queue_{&clock_, &executor_, &port_};
  InferenceStatistics statistics_;
  std::optional<PredictRouter> router_;
  std::optional<Batcher> batcher_;
};

TEST_F(ServingMemory, StaysFlatOverRequestsOfEveryKind) {
  for (int i = 0; i < kWarmUp; ++i) Ask(i);
  const int64_t before = testing::HeldBytes();
  for (int i = kWarmUp; i < kWarmUp + kRequests; ++i) Ask(i);
  EXPECT_LT(testing::HeldBytes() - before, kNoise);
}

}  // namespace
}  // namespace chainfleet
