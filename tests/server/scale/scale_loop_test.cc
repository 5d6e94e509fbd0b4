#include "server/scale/scale_loop.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A cluster whose queue the test moves by hand.
class FakeCluster final : public Scaler {
 public:
  std::string name() const override { return "the fake cluster"; }
  absl::StatusOr<std::vector<ClusterJob>> List() override {
    ++lists;
    if (!list_status.ok()) return list_status;
    std::vector<ClusterJob> listed;
    for (const auto& [id, state] : jobs) {
      listed.push_back({id, state, absl::StrCat("fake-", id, "-"), held.contains(id) ? "launch failed" : ""});
    }
    return listed;
  }
  absl::StatusOr<std::string> Submit() override {
    ++submits;
    if (!submit_status.ok()) return submit_status;
    const std::string id = absl::StrCat(next_id++);
    if (!swallow) jobs[id] = ClusterJob::State::kPending;
    return id;
  }
  absl::Status Withdraw(const std::string& job) override { return Order("withdraw", job); }
  absl::Status Drain(const std::string& job) override { return Order("drain", job); }
  absl::Status Kill(const std::string& job) override { return Order("kill", job); }

  absl::Status Order(const std::string& what, const std::string& job) {
    orders.push_back(what + " " + job);
    return order_status;
  }

  std::map<std::string, ClusterJob::State> jobs;
  std::set<std::string> held;
  std::vector<std::string> orders;
  absl::Status list_status, submit_status, order_status;
  int lists = 0, submits = 0, next_id = 100;
  bool swallow = false;  // jobs end at once
};

class ScaleLoopTest : public testing::Test {
 protected:
  ScaleLoopTest() { Restart(); }

  // Starts another process, which knows only the cluster's list.
  void Restart() {
    executor_.DropAll();
    loop_ = std::make_unique<ScaleLoop>(
        settings_, &cluster_, [this] { return demand_; }, &clock_, &executor_);
    loop_->Start();
  }
  void Waits(int64_t chains) {
    demand_.waiting = chains;
    demand_.waiting_for = chains > 0 ? absl::Minutes(1) : absl::ZeroDuration();
  }
  void Joins(const std::string& job, int32_t chains = 0, int32_t slots = 4) {
    cluster_.jobs[job] = ClusterJob::State::kRunning;
    Leaves(job);
    demand_.workers.push_back({absl::StrCat("fake-", job, "-0"), "host", "cpu", slots, chains});
  }
  void Leaves(const std::string& job) {
    std::erase_if(demand_.workers, [&](const WorkerView& w) { return w.id == absl::StrCat("fake-", job, "-0"); });
  }
  void Ends(const std::string& job) {
    Leaves(job);
    cluster_.jobs.erase(job);
  }
  void PassesFor(absl::Duration duration) { executor_.RunFor(duration); }
  void Pass() { PassesFor(kScaleInterval); }

  ScaleSettings settings_{.min_workers = 0, .max_workers = 10, .chains_per_worker = 4, .idle_after = absl::Minutes(5)};
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  FakeCluster cluster_;
  FleetDemand demand_;
  std::unique_ptr<ScaleLoop> loop_;
};

TEST_F(ScaleLoopTest, AsksForWorkersOnceAndNotAgainWhileTheyArePending) {
  Waits(8);
  PassesFor(absl::Minutes(30));
  EXPECT_EQ(cluster_.submits, 2);
  EXPECT_EQ(loop_->counts().desired, 2);
  EXPECT_EQ(loop_->counts().pending, 2);
}

TEST_F(ScaleLoopTest, AsksForManyWorkersInSeveralPasses) {
  Waits(40);
  executor_.RunUntilIdle();
  EXPECT_EQ(cluster_.submits, kSubmitsPerPass);
  Pass();
  EXPECT_EQ(cluster_.submits, 10);
}

TEST_F(ScaleLoopTest, FindsItsJobsAgainAfterARestart) {
  Waits(8);
  Pass();
  Joins("100", 4);
  Waits(4);
  Restart();
  PassesFor(absl::Minutes(10));
  EXPECT_EQ(cluster_.submits, 2);
  EXPECT_EQ(loop_->counts().running, 1);
  EXPECT_EQ(loop_->counts().pending, 1);
  EXPECT_THAT(cluster_.orders, IsEmpty());
}

TEST_F(ScaleLoopTest, DoesNothingWhileListFails) {
  cluster_.list_status = absl::UnavailableError("squeue: exit 1");
  Waits(8);
  PassesFor(absl::Minutes(10));
  EXPECT_GT(cluster_.lists, 100);
  EXPECT_EQ(cluster_.submits, 0);
  EXPECT_THAT(cluster_.orders, IsEmpty());
  EXPECT_EQ(loop_->counts().errors, cluster_.lists);
  cluster_.list_status = absl::OkStatus();
  Pass();
  EXPECT_EQ(cluster_.submits, 2);
}

TEST_F(ScaleLoopTest, EndsNoJobWhileListFails) {
  Joins("1");
  Pass();
  cluster_.list_status = absl::UnavailableError("squeue: exit 1");
  PassesFor(absl::Hours(1));
  EXPECT_THAT(cluster_.orders, IsEmpty());
  EXPECT_EQ(loop_->counts().lost_jobs, 0);
}

TEST_F(ScaleLoopTest, BacksOffWhenSubmissionsFail) {
  cluster_.submit_status = absl::UnavailableError("sbatch: invalid partition");
  Waits(8);
  PassesFor(absl::Minutes(1));
  EXPECT_THAT(cluster_.submits, testing::AllOf(testing::Ge(2), testing::Le(4)));
  PassesFor(absl::Hours(2));
  EXPECT_LE(cluster_.submits, 22);
  EXPECT_GE(cluster_.submits, 14);
  cluster_.submit_status = absl::OkStatus();
  PassesFor(kMaxScaleBackoff);
  EXPECT_EQ(loop_->counts().pending, 2);
}

TEST_F(ScaleLoopTest, TakesAJobThatEndsBeforeItsWorkerJoinedForAFailure) {
  cluster_.swallow = true;
  Waits(4);
  PassesFor(absl::Hours(1));
  EXPECT_LE(cluster_.submits, 14);
  EXPECT_GE(loop_->counts().lost_jobs, cluster_.submits - 1);
}

TEST_F(ScaleLoopTest, TakesManyJobsThatEndTogetherForOneFailure) {
  Waits(32);
  executor_.RunUntilIdle();
  ASSERT_EQ(cluster_.submits, kSubmitsPerPass);
  cluster_.jobs.clear();
  Pass();
  EXPECT_EQ(loop_->counts().lost_jobs, kSubmitsPerPass);
  PassesFor(kFirstScaleBackoff);
  EXPECT_EQ(cluster_.submits, 2 * kSubmitsPerPass);
}

TEST_F(ScaleLoopTest, ReplacesAWorkerThatDiedWithoutDelay) {
  Waits(4);
  Pass();
  Joins("100", 4);
  Waits(0);
  Pass();
  Ends("100");
  Waits(4);
  Pass();
  EXPECT_EQ(cluster_.submits, 2);
  EXPECT_EQ(loop_->counts().lost_jobs, 0);
}

TEST_F(ScaleLoopTest, DrainsWorkersThatAreIdleForLong) {
  Joins("1", 1);
  Joins("2");
  PassesFor(settings_.idle_after - absl::Seconds(1));
  EXPECT_THAT(cluster_.orders, IsEmpty());
  PassesFor(absl::Minutes(1));
  EXPECT_THAT(cluster_.orders, ElementsAre("drain 2"));
  EXPECT_EQ(loop_->counts().ending, 1);
}

TEST_F(ScaleLoopTest, RestartsTheIdleTimeWhenAChainCame) {
  Joins("1");
  PassesFor(absl::Minutes(4));
  Joins("1", 1);
  Pass();
  Joins("1");
  PassesFor(absl::Minutes(4));
  EXPECT_THAT(cluster_.orders, IsEmpty());
}

TEST_F(ScaleLoopTest, EndsTheJobOfAWorkerThatDoesNotLeave) {
  Joins("1");
  PassesFor(settings_.idle_after + absl::Minutes(1));
  ASSERT_THAT(cluster_.orders, ElementsAre("drain 1"));
  PassesFor(kReleaseTime);
  EXPECT_THAT(cluster_.orders, ElementsAre("drain 1", "kill 1"));
}

TEST_F(ScaleLoopTest, EndsAJobThatNobodyNeedsAndWhoseWorkerNeverJoined) {
  settings_.join_within = absl::Hours(1);
  Restart();
  cluster_.jobs["1"] = ClusterJob::State::kRunning;
  PassesFor(settings_.idle_after + absl::Minutes(1));
  EXPECT_THAT(cluster_.orders, ElementsAre("kill 1"));
  Ends("1");
  Pass();
  EXPECT_EQ(loop_->counts().lost_jobs, 0);
}

TEST_F(ScaleLoopTest, DoesNotWaitForEverForAWorkerThatCannotJoin) {
  Waits(4);
  Pass();
  cluster_.jobs["100"] = ClusterJob::State::kRunning;
  PassesFor(settings_.join_within);
  EXPECT_THAT(cluster_.orders, IsEmpty());
  Pass();
  EXPECT_THAT(cluster_.orders, ElementsAre("kill 100"));
  EXPECT_EQ(loop_->counts().lost_jobs, 1);
  EXPECT_EQ(cluster_.submits, 1) << "not at once: the next may end alike";
  Ends("100");
  PassesFor(kFirstScaleBackoff + kScaleInterval);
  EXPECT_EQ(cluster_.submits, 2);
  EXPECT_EQ(loop_->counts().lost_jobs, 1) << "its end is no second loss";
}

TEST_F(ScaleLoopTest, BacksOffWhenNoWorkerCanJoin) {
  Waits(4);
  for (int i = 0; i < 36 * 12; ++i) {  // 36 min
    for (auto& [id, state] : cluster_.jobs) state = ClusterJob::State::kRunning;
    for (const std::string& order : std::exchange(cluster_.orders, {})) Ends(order.substr(order.find(' ') + 1));
    Pass();
  }
  EXPECT_LE(cluster_.submits, 7);
  EXPECT_GE(loop_->counts().lost_jobs, 4);
}

TEST_F(ScaleLoopTest, GivesAWorkerItsTimeToJoin) {
  Waits(4);
  Pass();
  PassesFor(absl::Hours(2));  // in the queue
  cluster_.jobs["100"] = ClusterJob::State::kRunning;
  PassesFor(settings_.join_within / 2);
  Joins("100", 4);
  Pass();
  Leaves("100");  // a network failure: a worker that joined once keeps its time limit
  PassesFor(absl::Hours(1));
  EXPECT_THAT(cluster_.orders, IsEmpty());
  EXPECT_EQ(loop_->counts().lost_jobs, 0);
}

TEST_F(ScaleLoopTest, WithdrawsHeldJobs) {
  Waits(8);
  Pass();
  ASSERT_EQ(cluster_.submits, 2);
  cluster_.held = {"100", "101"};
  Pass();
  EXPECT_THAT(cluster_.orders, ElementsAre("withdraw 100", "withdraw 101"));
  EXPECT_EQ(loop_->counts().lost_jobs, 2);
  EXPECT_EQ(cluster_.submits, 2);
  cluster_.held.clear();
  cluster_.jobs.clear();
  PassesFor(kFirstScaleBackoff + kScaleInterval);
  EXPECT_EQ(cluster_.submits, 4);
  EXPECT_EQ(loop_->counts().lost_jobs, 2);
}

TEST_F(ScaleLoopTest, TriesAgainToEndAJobWhoseWorkerCannotJoin) {
  Waits(4);
  Pass();
  cluster_.jobs["100"] = ClusterJob::State::kRunning;
  cluster_.order_status = absl::UnavailableError("scancel: exit 1");
  PassesFor(settings_.join_within + kScaleInterval);
  EXPECT_EQ(loop_->counts().lost_jobs, 0);
  cluster_.order_status = absl::OkStatus();
  Pass();
  EXPECT_THAT(cluster_.orders, ElementsAre("kill 100", "kill 100"));
  EXPECT_EQ(loop_->counts().lost_jobs, 1);
}

TEST_F(ScaleLoopTest, SignalsAWorkerOnlyOnceAndNeverOneThatDrainsAlready) {
  Joins("1");
  demand_.workers.back().draining = true;  // ordered by another process
  PassesFor(settings_.idle_after - absl::Seconds(1));
  EXPECT_THAT(cluster_.orders, IsEmpty());
  PassesFor(kReleaseTime);
  EXPECT_THAT(cluster_.orders, ElementsAre("kill 1")) << "an operator drained it, and nobody else ends its job";
}

TEST_F(ScaleLoopTest, TriesAgainToLetAWorkerGo) {
  Joins("1");
  cluster_.order_status = absl::UnavailableError("scancel: exit 1");
  PassesFor(settings_.idle_after);
  Pass();
  cluster_.order_status = absl::OkStatus();
  PassesFor(absl::Minutes(1));
  EXPECT_THAT(cluster_.orders, ElementsAre("drain 1", "drain 1", "drain 1"));
}

TEST_F(ScaleLoopTest, WithdrawsUnneededJobs) {
  Waits(4);
  Pass();
  Waits(0);
  PassesFor(settings_.idle_after + absl::Minutes(1));
  ASSERT_FALSE(cluster_.orders.empty());
  EXPECT_EQ(cluster_.orders.front(), "withdraw 100");
  Ends("100");
  Pass();
  EXPECT_EQ(loop_->counts().lost_jobs, 0);
}

TEST_F(ScaleLoopTest, LeavesChainsToWorkersThatRunElsewhere) {
  demand_.workers.push_back({"bare-metal", "host", "cuda:0", 8, 0});
  Waits(8);
  PassesFor(kStuckAfter / 2);
  EXPECT_EQ(cluster_.submits, 0);
  Waits(9);
  Pass();
  EXPECT_EQ(cluster_.submits, 1);
}

TEST_F(ScaleLoopTest, AsksWhenChainsDoNotTakeTheSlotsThatAreFree) {
  demand_.workers.push_back({"small-memory", "host", "cuda:0", 8, 1});
  Waits(2);
  PassesFor(kStuckAfter - absl::Seconds(1));
  EXPECT_EQ(cluster_.submits, 0);
  PassesFor(kScaleInterval);
  EXPECT_EQ(cluster_.submits, 1);
}

TEST_F(ScaleLoopTest, DoesNotTakeAnotherJobsWorkerForItsOwn) {
  cluster_.jobs["1"] = ClusterJob::State::kRunning;
  Joins("10", 2);
  PassesFor(settings_.idle_after + absl::Minutes(1));
  EXPECT_THAT(cluster_.orders, ElementsAre("kill 1"));
}

TEST_F(ScaleLoopTest, StopsWhenItIsDestroyed) {
  Pass();
  const int before = cluster_.lists;
  loop_.reset();
  PassesFor(absl::Hours(1));
  EXPECT_EQ(cluster_.lists, before);
}

}  // namespace
}  // namespace chainfleet
