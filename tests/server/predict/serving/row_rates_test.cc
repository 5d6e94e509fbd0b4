#include "server/predict/serving/row_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/predict/serving/batcher.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

TEST(RowRates, RefusesRowsBeyondTheRateOfTheirTenantAndSaysHowLongToWait) {
  RowRates rates(10);
  const auto take = [&](const std::string& tenant, int64_t rows, int64_t ms) {
    return rates.Take(tenant, rows, absl::Milliseconds(ms));
  };
  EXPECT_TRUE(take("a", 6, 0).ok());
  const absl::Status refused = take("a", 6, 0);
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("try 6 rows again in 200ms"));
  EXPECT_EQ(BoundOf(refused), "tenant_rows_per_second");
  EXPECT_EQ(RetryAfterOf(refused), absl::Milliseconds(200));
  EXPECT_TRUE(take("b", 6, 0).ok());
  EXPECT_TRUE(take("a", 6, 200).ok());
  EXPECT_TRUE(take("a", 25, 1200).ok()) << "more than a second's rows, from a full bucket";
  EXPECT_EQ(ReasonOf(take("a", 1, 2200)), "TENANT_LIMIT") << "taken in advance";
  EXPECT_TRUE(take("a", 1, 3200).ok());
}

TEST(RefusalTimes, LeaveTimeBetweenTheRefusalsOfATenantButASecondAtMost) {
  RefusalTimes times;
  const auto wait = [&](const std::string& tenant, absl::Duration now = absl::ZeroDuration()) {
    return times.Wait(tenant, now, absl::InfiniteDuration());
  };
  EXPECT_EQ(wait("flood"), RefusalTimes::kDelay);
  EXPECT_EQ(wait("flood"), RefusalTimes::kDelay + RefusalTimes::kSpacing);
  EXPECT_EQ(wait("quiet"), RefusalTimes::kDelay);
  for (int i = 0; i < 1000; ++i) wait("flood");
  EXPECT_EQ(wait("flood"), RefusalTimes::kLongest);
  EXPECT_EQ(wait("flood", absl::Minutes(1)), RefusalTimes::kDelay);
}

TEST(RefusalTimes, EndBeforeTheDeadlineOfTheRequest) {
  RefusalTimes times;
  for (const int64_t left : {-1, 0, 80}) {
    EXPECT_EQ(times.Wait("flood", absl::Seconds(5), absl::Seconds(5) + absl::Milliseconds(left)),
              absl::Milliseconds(std::max<int64_t>(left, 0) / 2));
  }
}

TEST(RowRates, ATenantMayHaveARateOfItsOwn) {
  RowRates rates({RowRates::kNone, {{"slow", 10}}});
  for (const int64_t rows : {10, 1000}) EXPECT_TRUE(rates.Take("quick", rows, absl::ZeroDuration()).ok());
  EXPECT_TRUE(rates.Take("slow", 10, absl::ZeroDuration()).ok());
  const absl::Status refused = rates.Take("slow", 1, absl::ZeroDuration());
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("slow may predict 10 rows a second"));
  rates.GiveBack("slow", 1);
  EXPECT_TRUE(rates.Take("slow", 1, absl::ZeroDuration()).ok());
}

TEST(RowRates, WithoutABoundAllRowsPass) {
  RowRates rates(RowRates::kNone);
  EXPECT_TRUE(rates.Take("a", int64_t{1} << 60, absl::ZeroDuration()).ok());
}

TEST(RowRates, RowsThatTheQueueRefusesDoNotCount) {
  FakeClock clock;
  ManualExecutor executor(&clock);
  testing::FakeDrawCatalog catalog(&executor, {2, 3}, Classes{3});
  testing::FakeShardPort port(&executor, testing::ArbitraryProbabilities(3));
  port.workers = {{"a", testing::FakeShardPort::Mood::kHangs}};
  ShardQueue queue(&clock, &executor, &port);
  PredictRouter router(&clock, &executor, &catalog, &queue);
  InferenceStatistics statistics;
  Batcher batcher(&clock, &executor, &router, &statistics, {.max_waiting = 1, .tenant_rows_per_second = 4});
  const auto row = std::make_shared<InputTensor>();
  row->shape = {1, 1};
  row->bytes.assign(sizeof(float), 0);
  std::vector<absl::Status> refused;
  for (int i = 0; i < 6; ++i) {
    batcher.Predict({.draws = {.job = "job"}, .tenant = "a"}, row, absl::Seconds(60), PredictPriority::kNormal,
                    [&refused](const absl::StatusOr<Prediction>& answer) { refused.push_back(answer.status()); });
    executor.RunFor(Batcher::kRefusalDelay);
  }
  ASSERT_EQ(refused.size(), 3u) << "two under way, one waits";
  for (const absl::Status& status : refused) {
    EXPECT_EQ(ReasonOf(status), "QUEUE_FULL") << "three rows of four are taken";
    EXPECT_EQ(BoundOf(status), "waiting_predictions");
  }
}

}  // namespace
}  // namespace chainfleet
