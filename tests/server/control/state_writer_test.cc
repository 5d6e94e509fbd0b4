#include "server/control/state_writer.h"

#include <new>

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"
#include "tests/support/recording_store.h"

namespace chainfleet {
namespace {

class StateWriterTest : public testing::Test {
 protected:
  static change::ForgetGarbage Change(int n) { return {{std::to_string(n)}}; }
  void Write(int n) {
    writer_.Write(Change(n), [this, n](const ApplyResult& result) {
      done_.push_back(n);
      statuses_.push_back(result.status);
    });
  }
  // The status of a change that is refused at once.
  absl::Status Refusal() {
    statuses_.clear();
    Write(0);
    EXPECT_TRUE(statuses_.empty()) << "answered inside the call";
    executor_.RunUntilIdle();
    return statuses_.empty() ? absl::UnknownError("no answer") : statuses_.front();
  }
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  RecordingStore store_;
  std::vector<absl::Status> lost_;
  StateWriter writer_{&clock_, &executor_, &store_, [this](const absl::Status& s) { lost_.push_back(s); }};
  std::vector<int> done_;
  std::vector<absl::Status> statuses_;
};

TEST_F(StateWriterTest, GroupsWaitingChangesAndAnswersInOrder) {
  const int count = limits::kStateWriterBatch + 10;
  for (int i = 0; i < count; ++i) Write(i);
  EXPECT_TRUE(done_.empty()) << "nothing is written inside the call";
  executor_.RunUntilIdle();
  EXPECT_THAT(store_.group_sizes(), testing::ElementsAre(limits::kStateWriterBatch, 10));
  ASSERT_EQ(done_.size(), static_cast<size_t>(count));
  EXPECT_TRUE(std::is_sorted(done_.begin(), done_.end()));
}

TEST_F(StateWriterTest, BoundsItsQueue) {
  for (int i = 0; i < limits::kStateWriterQueue; ++i) writer_.Write(Change(i), [](const ApplyResult&) {});
  std::vector<absl::Status> refused;
  writer_.Write(Change(0), [&](const ApplyResult& result) { refused.push_back(result.status); });
  executor_.RunUntilIdle();
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(ReasonOf(refused[0]), "OVERLOADED");
  EXPECT_EQ(BoundOf(refused[0]), "waiting_changes");
  EXPECT_TRUE(Refusal().ok());
}

TEST_F(StateWriterTest, LosesTheStoreOnceAndWritesNoMore) {
  for (int i = 0; i < limits::kStateWriterBatch + 1; ++i) Write(i);
  store_.FailWith(WithReason(absl::UnavailableError("taken over"), "NOT_LEADER"));
  executor_.RunUntilIdle();
  EXPECT_EQ(lost_.size(), 1u);
  EXPECT_EQ(statuses_.size(), static_cast<size_t>(limits::kStateWriterBatch + 1));
  for (const absl::Status& status : statuses_) EXPECT_EQ(ReasonOf(status), "NOT_LEADER");
  EXPECT_EQ(ReasonOf(Refusal()), "NOT_LEADER");
  EXPECT_EQ(ReasonOf(writer_.Commit({Change(0)}).status()), "NOT_LEADER");
  EXPECT_EQ(store_.group_sizes().size(), 1u);
}

TEST_F(StateWriterTest, ABlockingCommitMayLoseTheStoreToo) {
  Write(1);
  store_.FailWith(WithReason(absl::UnavailableError("taken over"), "NOT_LEADER"));
  EXPECT_EQ(ReasonOf(writer_.Commit({Change(0)}).status()), "NOT_LEADER");
  EXPECT_EQ(lost_.size(), 1u);
  executor_.RunUntilIdle();
  ASSERT_EQ(statuses_.size(), 1u) << "the change that waited is answered";
  EXPECT_EQ(ReasonOf(statuses_[0]), "NOT_LEADER");
  EXPECT_EQ(lost_.size(), 1u);
  EXPECT_EQ(store_.group_sizes().size(), 1u);
}

TEST_F(StateWriterTest, ABlockingCommitReturnsTheResultsInOneTransaction) {
  const auto results = writer_.Commit({Change(1), Change(2)});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->size(), 2u);
  EXPECT_THAT(store_.group_sizes(), testing::ElementsAre(2));
}

TEST_F(StateWriterTest, ReportsJobsWhoseCommittedDrawsChangedBeforeItAnswers) {
  std::vector<std::string> events;
  writer_.OnDrawsChanged([&](const std::string& job) { events.push_back(job); });
  const std::vector<StateChange> changes{change::MarkCorrupt{"marked", "object", true},
                                         change::MarkCorrupt{"cleared", "object", false},
                                         change::ExpireSegments{{"expired", 0}, {0}},
                                         change::PurgeJob{"purged"},
                                         Change(1),
                                         change::DeleteVersion{"versioned", 1}};
  for (const StateChange& change : changes) {
    writer_.Write(change, [&](const ApplyResult&) { events.emplace_back("answer"); });
  }
  executor_.RunUntilIdle();
  EXPECT_THAT(events, testing::ElementsAre("marked", "cleared", "expired", "purged", "answer", "answer", "answer",
                                           "answer", "answer", "answer"));
  events.clear();
  ASSERT_TRUE(writer_.Commit(changes).ok());
  EXPECT_THAT(events, testing::ElementsAre("marked", "cleared", "expired", "purged"));
  events.clear();
  store_.FailWith(WithReason(absl::UnavailableError("no answer"), "OUTCOME_UNKNOWN"));
  ASSERT_FALSE(writer_.Commit(changes).ok());
  EXPECT_THAT(events, testing::ElementsAre("marked", "cleared", "expired", "purged")) << "they may be committed";
}

TEST_F(StateWriterTest, PersistRepeatsTheChangeWhileTheDiskIsFull) {
  store_.SetFull(true);
  writer_.Persist(Change(1));
  executor_.RunUntilIdle();
  EXPECT_EQ(store_.group_sizes().size(), 1u);
  executor_.RunFor(limits::kRetryMax);
  EXPECT_EQ(store_.group_sizes().size(), 2u);
  store_.SetFull(false);
  executor_.RunFor(10 * limits::kRetryMax);
  EXPECT_EQ(store_.group_sizes().size(), 3u) << "once more, and it was written";
}

TEST_F(StateWriterTest, ClosedWriterRefusesChangesAndDropsWaitingOnes) {
  Write(1);
  writer_.Close();
  executor_.RunUntilIdle();
  EXPECT_TRUE(done_.empty());
  EXPECT_TRUE(absl::IsCancelled(Refusal()));
  EXPECT_TRUE(absl::IsCancelled(writer_.Commit({Change(1)}).status()));
  EXPECT_TRUE(lost_.empty());
}

TEST_F(StateWriterTest, WithoutMemoryForAWriteTheProcessEnds) {
  store_.BeforeEachCall([] { throw std::bad_alloc(); });
  Write(1);
  EXPECT_DEATH(executor_.RunUntilIdle(), "bad_alloc");
  EXPECT_DEATH(writer_.Commit({Change(0)}).IgnoreError(), "bad_alloc");
}

}  // namespace
}  // namespace chainfleet
