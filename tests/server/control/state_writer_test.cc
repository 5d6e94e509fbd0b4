#include "server/control/state_writer.h"

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/control/recording_store.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

class StateWriterTest : public testing::Test {
 protected:
  absl::Status Append(int n) {
    return writer_.Append(change::ForgetGarbage{{std::to_string(n)}}, [this, n](const ApplyResult& result) {
      done_.push_back(n);
      statuses_.push_back(result.status);
    });
  }
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  RecordingStore store_;
  std::vector<absl::Status> lost_;
  StateWriter writer_{&clock_, &executor_, &store_, [this](const absl::Status& s) { lost_.push_back(s); }};
  std::vector<int> done_;
  std::vector<absl::Status> statuses_;
};

TEST_F(StateWriterTest, GroupsWhatWaitsAndAnswersInOrder) {
  const int count = limits::kStateWriterBatch + 10;
  for (int i = 0; i < count; ++i) ASSERT_TRUE(Append(i).ok());
  EXPECT_TRUE(done_.empty()) << "nothing is written inside the call";
  executor_.RunUntilIdle();
  EXPECT_THAT(store_.group_sizes(), testing::ElementsAre(limits::kStateWriterBatch, 10));
  ASSERT_EQ(done_.size(), static_cast<size_t>(count));
  EXPECT_TRUE(std::is_sorted(done_.begin(), done_.end()));
}

TEST_F(StateWriterTest, BoundsItsQueue) {
  for (int i = 0; i < limits::kStateWriterQueue; ++i) ASSERT_TRUE(Append(i).ok());
  EXPECT_EQ(ReasonOf(Append(0)), "OVERLOADED");
  executor_.RunUntilIdle();
  EXPECT_TRUE(Append(0).ok());
}

TEST_F(StateWriterTest, LosesTheStoreOnceAndWritesNoMore) {
  for (int i = 0; i < limits::kStateWriterBatch + 1; ++i) ASSERT_TRUE(Append(i).ok());
  store_.FailWith(WithReason(absl::UnavailableError("taken over"), "NOT_LEADER"));
  executor_.RunUntilIdle();
  EXPECT_EQ(lost_.size(), 1u);
  EXPECT_EQ(statuses_.size(), static_cast<size_t>(limits::kStateWriterBatch + 1));
  for (const absl::Status& status : statuses_) EXPECT_EQ(ReasonOf(status), "NOT_LEADER");
  EXPECT_EQ(ReasonOf(Append(0)), "NOT_LEADER");
  EXPECT_EQ(store_.group_sizes().size(), 1u);
}

TEST_F(StateWriterTest, ClosedWriterRefusesAndDropsWhatWaits) {
  ASSERT_TRUE(Append(1).ok());
  writer_.Close();
  executor_.RunUntilIdle();
  EXPECT_TRUE(done_.empty());
  EXPECT_TRUE(absl::IsCancelled(Append(2)));
}

}  // namespace
}  // namespace chainfleet
