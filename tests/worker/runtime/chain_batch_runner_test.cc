#include "worker/runtime/chain_batch_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/draw_codec/segment_codec.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/worker_fixture.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

// Runner, loop, uploader and session together, with the rules of a coordinator.
class ChainBatchRunnerTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  FakeBatchScript script_;
  FakeCoordinator server_{&executor_};
  std::unique_ptr<FakeWorker> worker_ =
      std::make_unique<FakeWorker>(&server_, &executor_, &clock_, &script_, "w0", 16, 1 << 20);
  const ChainId chain_{"job-a", 0};

  std::shared_ptr<JobPlan> Plan(int32_t chains) { return std::make_shared<JobPlan>(*AnalyticPlan("job-a", chains)); }

  // Starts two chains. The first one is handed back after some steps, and nobody gets it.
  void HandOneChainBack() {
    script_.total_steps = 1000;
    Start(Plan(2));
    Run(absl::Seconds(3));
    server_.grants_enabled = false;
    server_.stop_orders[chain_] = StopOrder::How::kHandBack;
    Run(absl::Seconds(8));
  }

  void Start(const std::shared_ptr<const JobPlan>& plan) {
    server_.AddChains(plan, plan->spec.chains);
    worker_->session.Start();
  }
  void Run(absl::Duration limit) { RunWorker(worker_.get(), &executor_, &clock_, limit); }

  // Expects that every committed draw is the draw of its (chain, step), and that no due draw up to `last_step` is
  // missing.
  void ExpectPath(int32_t index, int64_t last_step) {
    const FakeCoordinator::Chain& chain = server_.chains[{"job-a", index}];
    int64_t step = 0;
    DigestHex parent = FirstParentDigest();
    for (const Segment& segment : chain.segments) {
      EXPECT_EQ(segment.parent_digest, parent);
      parent = segment.digest;
      const auto content = DecodeSegment(server_.blobs.at(segment.object.name));
      ASSERT_TRUE(content.ok()) << content.status();
      for (const Draw& draw : content->draws) {
        step += script_.collect_every;
        EXPECT_EQ(draw.step, step);
        for (size_t kind = 0; kind < 2; ++kind) {
          EXPECT_EQ(draw.theta[kind][3], FakeChainBatch::Coordinate(index, step, kind, 3));
        }
      }
    }
    EXPECT_EQ(step, last_step - last_step % script_.collect_every);
  }
};

TEST_F(ChainBatchRunnerTest, RunsAJobToItsEnd) {
  Start(Plan(4));
  Run(absl::Seconds(30));
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(server_.chains[ChainId("job-a", i)].state, ChainState::kSucceeded);
    ExpectPath(i, 20);
  }
  EXPECT_THAT(script_.rows_of_steps, Each(4u));
  EXPECT_TRUE(worker_->held.quiet());
  EXPECT_EQ(worker_->observer.chain_steps, 80);
  EXPECT_EQ(worker_->observer.draws_committed, 40);
}

// For every interruption of the chain, each traced step is committed once, with the steps up to its resume point.
TEST_F(ChainBatchRunnerTest, CommitsCarryTheTracesOfTheirSteps) {
  script_.trace_every = 3;
  Start(Plan(2));
  Run(absl::Seconds(30));
  for (int32_t i = 0; i < 2; ++i) {
    std::vector<int64_t> steps;
    std::vector<double> values;
    for (const ProgressCommit& commit : server_.commits) {
      if (commit.chain.index != i) continue;
      const ChainTrace& trace = commit.trace;
      EXPECT_TRUE(trace.well_formed());
      EXPECT_LE(trace.steps.empty() ? 0 : trace.steps.back(), commit.resume_point.step);
      steps.insert(steps.end(), trace.steps.begin(), trace.steps.end());
      values.insert(values.end(), trace.values.begin(), trace.values.end());
    }
    EXPECT_THAT(steps, ElementsAre(3, 6, 9, 12, 15, 18));
    EXPECT_THAT(values,
                ElementsAre(1000 * i + 3, 1000 * i + 6, 1000 * i + 9, 1000 * i + 12, 1000 * i + 15, 1000 * i + 18));
  }
}

TEST_F(ChainBatchRunnerTest, ACommitHasAtMostAWindowOfTracedSteps) {
  script_.trace_every = 1;
  script_.total_steps = script_.collect_every = 5 * kTraceWindow / 2;
  script_.step_time = absl::Milliseconds(1);
  Start(Plan(1));
  Run(absl::Seconds(30));
  ASSERT_THAT(server_.commits, SizeIs(1));
  const ChainTrace& trace = server_.commits[0].trace;
  EXPECT_TRUE(trace.well_formed());
  ASSERT_THAT(trace.steps, SizeIs(kTraceWindow));
  EXPECT_EQ(trace.steps.front(), script_.total_steps - kTraceWindow + 1);
  EXPECT_EQ(trace.steps.back(), script_.total_steps);
  EXPECT_EQ(trace.values.front(), static_cast<double>(trace.steps.front()));
}

TEST_F(ChainBatchRunnerTest, ClosesASegmentAfterASecond) {
  Start(Plan(1));
  script_.total_steps = 40;
  Run(absl::Seconds(30));
  // A draw each 200 ms; a draft is closed at the first boundary a second after its first draw.
  ASSERT_GE(server_.chains[chain_].segments.size(), 3u);
  EXPECT_THAT(server_.chains[chain_].segments[0].steps, ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST_F(ChainBatchRunnerTest, ClosesASegmentAtTheDrawsTheJobAsksFor) {
  auto plan = Plan(1);
  plan->spec.collect.segment_draws = 2;
  Start(plan);
  Run(absl::Seconds(30));
  ASSERT_THAT(server_.chains[chain_].segments, SizeIs(5));
  for (const Segment& segment : server_.chains[chain_].segments) EXPECT_THAT(segment.steps, SizeIs(2));
}

TEST_F(ChainBatchRunnerTest, NeverMakesASegmentAboveItsBytes) {
  script_.dimension = 200'000;  // 1.6 MB a draw of two kinds
  script_.step_time = absl::Milliseconds(1);
  Start(Plan(1));
  Run(absl::Seconds(30));
  for (const Segment& segment : server_.chains[chain_].segments) EXPECT_LE(segment.num_draws(), 2);
  ExpectPath(0, 20);
}

TEST_F(ChainBatchRunnerTest, NeverMakesASegmentOfMoreDrawsThanAServerTakes) {
  script_.dimension = 4;
  script_.collect_every = 1;
  script_.step_time = absl::Nanoseconds(10);
  script_.total_steps = limits::kMaxSegmentDraws + 1000;
  auto plan = Plan(1);
  plan->spec.collect.segment_draws = 1'000'000;
  Start(plan);
  Run(absl::Seconds(30));
  EXPECT_EQ(server_.chains[chain_].state, ChainState::kSucceeded);
  ASSERT_THAT(server_.chains[chain_].segments, SizeIs(2));
  EXPECT_EQ(server_.chains[chain_].segments[0].num_draws(), limits::kMaxSegmentDraws - 1)
      << "the end of a chain may add a draw";
  ExpectPath(0, script_.total_steps);
}

TEST_F(ChainBatchRunnerTest, WaitsWhileTheQueueIsFullAndLosesNothing) {
  script_.dimension = 20'000;  // 160 KB a draw, 1 MiB of queue
  script_.total_steps = 60;
  auto plan = Plan(2);
  plan->spec.collect.segment_draws = 1;
  Start(plan);
  Run(absl::Seconds(1));
  server_.put_failures.assign(400, absl::UnavailableError("down"));
  Run(absl::Minutes(2));
  const int64_t steps = script_.steps_taken;
  EXPECT_LT(steps, 30);
  EXPECT_LE(worker_->uploader.queued_bytes(), 1 << 20);
  Run(absl::Seconds(20));
  EXPECT_EQ(script_.steps_taken, steps);
  server_.put_failures.clear();
  Run(absl::Minutes(1));
  EXPECT_EQ(server_.chains[chain_].state, ChainState::kSucceeded);
  ExpectPath(0, 60);
  ExpectPath(1, 60);
}

TEST_F(ChainBatchRunnerTest, GivesTheSameDrawsWhenItIsKilledAndResumed) {
  script_.total_steps = 100;
  Start(Plan(2));
  Run(absl::Seconds(4));
  const int64_t committed = server_.chains[chain_].progress.step;
  EXPECT_GT(committed, 0);
  EXPECT_LT(committed, 100);
  executor_.DropAll();
  for (auto& [id, chain] : server_.chains) chain.state = ChainState::kPending;  // the dead worker's leases ended
  worker_ = std::make_unique<FakeWorker>(&server_, &executor_, &clock_, &script_, "w1", 16);
  worker_->session.Start();
  Run(absl::Minutes(1));
  for (int32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(server_.chains[ChainId("job-a", i)].state, ChainState::kSucceeded);
    EXPECT_EQ(server_.chains[ChainId("job-a", i)].epoch, 2);
    ExpectPath(i, 100);
  }
}

TEST_F(ChainBatchRunnerTest, CommitsResumePointsWithoutDraws) {
  script_.collect_every = 1000;
  script_.total_steps = 1000;
  auto plan = Plan(1);
  plan->spec.resume_point_every_steps = 7;
  Start(plan);
  Run(absl::Seconds(5));
  ASSERT_FALSE(server_.commits.empty());
  for (const ProgressCommit& commit : server_.commits) {
    EXPECT_FALSE(commit.segment.has_value());
    EXPECT_EQ(commit.resume_point.step % 7, 0);
  }
}

TEST_F(ChainBatchRunnerTest, CommitsResumePointsByTimeByDefault) {
  script_.collect_every = 10000;
  script_.total_steps = 10000;
  Start(Plan(1));
  Run(absl::Seconds(95));
  EXPECT_THAT(server_.commits, SizeIs(3));
}

// Returns the steps between resume points, a tenth of a second each, starting with the steps before the first one.
class ResumePointsByTime : public ChainBatchRunnerTest {
 protected:
  std::vector<int64_t> GapsOf(int32_t index) {
    std::vector<int64_t> gaps;
    int64_t last = 0;
    for (const ProgressCommit& commit : server_.commits) {
      if (commit.chain.index != index) continue;
      gaps.push_back(commit.resume_point.step - std::exchange(last, commit.resume_point.step));
    }
    return gaps;
  }
  void SampleWithoutDraws(int32_t chains) {
    script_.collect_every = script_.total_steps = 1'000'000;
    Start(Plan(chains));
  }
};

TEST_F(ResumePointsByTime, TakeAHundredthOfItHoweverLongTheyTake) {
  script_.save_time = absl::Milliseconds(300);
  SampleWithoutDraws(2);
  Run(absl::Seconds(200));
  // 60 s from the start of one to the start of the next, and no chain steps in 0.6 s of them.
  for (int32_t i = 0; i < 2; ++i) EXPECT_THAT(GapsOf(i), ElementsAre(300, AllOf(Ge(593), Le(595)), 594));
}

TEST_F(ResumePointsByTime, AreNeverFurtherApartThanTheirBound) {
  script_.save_time = absl::Seconds(7);
  SampleWithoutDraws(1);
  Run(absl::Minutes(25));
  EXPECT_THAT(GapsOf(0), ElementsAre(300, AllOf(Ge(5925), Le(5931)), AllOf(Ge(5925), Le(5931))));
}

TEST_F(ResumePointsByTime, CountTheWaitForRoomOnceForAllChains) {
  executor_.DropAll();
  worker_ = std::make_unique<FakeWorker>(&server_, &executor_, &clock_, &script_, "w0", 16, 1);
  server_.commit_failures.assign(3, absl::UnavailableError("down"));
  SampleWithoutDraws(3);
  const absl::Duration began = clock_.Monotonic();
  Run(absl::Seconds(40));
  const absl::Duration waited = clock_.Monotonic() - began - script_.steps_taken * script_.step_time;
  ASSERT_GT(waited, absl::Milliseconds(400));
  Run(absl::Seconds(260));
  for (int32_t i = 0; i < 3; ++i) {
    const std::vector<int64_t> gaps = GapsOf(i);
    ASSERT_GE(gaps.size(), 3u);
    EXPECT_NEAR(static_cast<double>(gaps[1]), limits::kResumePointFactor * waited / script_.step_time, 40);
    EXPECT_NEAR(static_cast<double>(gaps[2]), 300, 10) << "nothing was in the way";
  }
}

TEST_F(ChainBatchRunnerTest, ADivergedChainKeepsItsDrawsAndTheOthersContinue) {
  script_.diverges_at[1] = 7;
  Start(Plan(3));
  Run(absl::Seconds(30));
  EXPECT_EQ(server_.chains[ChainId("job-a", 1)].state, ChainState::kDiverged);
  EXPECT_THAT(server_.chains[ChainId("job-a", 1)].reason, HasSubstr("step 7"));
  ExpectPath(1, 6);
  ExpectPath(0, 20);
  ExpectPath(2, 20);
}

// A batch on a GPU reports one step late that a row has diverged: no commit may let a chain continue from such a step.
TEST_F(ChainBatchRunnerTest, AResumePointIsNeverOfARowThatHasDiverged) {
  script_.diverges_at[1] = 7;
  script_.reports_late_by = 1;
  const auto plan = Plan(3);
  plan->spec.resume_point_every_steps = 1;
  Start(plan);
  Run(absl::Seconds(30));
  EXPECT_EQ(server_.chains[ChainId("job-a", 1)].state, ChainState::kDiverged);
  EXPECT_THAT(server_.chains[ChainId("job-a", 1)].reason, HasSubstr("step 7"));
  ExpectPath(1, 6);
  ExpectPath(0, 20);
}

TEST_F(ChainBatchRunnerTest, SplitsTheBatchInHalfWhenMemoryRunsOut) {
  script_.max_rows = 3;
  Start(Plan(10));
  ::testing::internal::CaptureStdout();
  Run(absl::Minutes(2));
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              HasSubstr("the batch is split job=job-a chains=\"0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1\""));
  for (int32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(server_.chains[ChainId("job-a", i)].state, ChainState::kSucceeded);
    ExpectPath(i, 20);
  }
  EXPECT_THAT(server_.released, IsEmpty());
}

TEST_F(ChainBatchRunnerTest, GivesAChainBackThatDoesNotFitAlone) {
  script_.max_rows = 0;
  Start(Plan(2));
  Run(absl::Seconds(30));
  ASSERT_FALSE(server_.released.empty());
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kFailed);
  EXPECT_EQ(server_.chains[chain_].state, ChainState::kFailed);
  EXPECT_THAT(server_.chains[chain_].reason, HasSubstr("single chain"));
}

TEST_F(ChainBatchRunnerTest, ReleasesTheChainsOfABatchThatFails) {
  script_.step_status = absl::InternalError("bad kernel");
  Start(Plan(2));
  ::testing::internal::CaptureStdout();
  Run(absl::Seconds(30));
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              HasSubstr("its chains are handed back job=job-a chains=\"0:1 1:1\""));
  for (int32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(server_.chains[ChainId("job-a", i)].state, ChainState::kFailed);
    EXPECT_EQ(server_.chains[ChainId("job-a", i)].reason, "bad kernel");
  }
  EXPECT_TRUE(worker_->held.quiet());
}

TEST_F(ChainBatchRunnerTest, RejectsAJobWhoseValuesTheNetworkDoesNotTake) {
  script_.step_status = absl::InvalidArgumentError("an unknown index");
  Start(Plan(2));
  Run(absl::Seconds(30));
  ASSERT_THAT(server_.released, SizeIs(2)) << "no worker tries again";
  for (const ReleasedChain& released : server_.released) EXPECT_EQ(released.why, ReleasedChain::Why::kInvalid);
}

TEST_F(ChainBatchRunnerTest, ALostDeviceGivesEveryChainBackAndEndsTheProcess) {
  server_.AddChains(AnalyticPlan("job-b", 2), 2);
  Start(Plan(3));
  script_.on_step = [this](int32_t, int64_t step) {
    if (step < 5) return;
    script_.step_status = WithReason(absl::InternalError("an illegal address"), kDeviceLost);
  };
  Run(absl::Seconds(30));
  EXPECT_THAT(server_.released, SizeIs(5)) << "those of the other job, too";
  for (const ReleasedChain& released : server_.released) {
    EXPECT_EQ(released.why, ReleasedChain::Why::kHung);
    EXPECT_EQ(released.reason, "an illegal address");
  }
  EXPECT_TRUE(worker_->session.stuck());
  EXPECT_EQ(server_.requests.back().devices[0].chain_slots, 0) << "it takes no more";
}

TEST_F(ChainBatchRunnerTest, RefusesAPlanThisBuildLacks) {
  script_.create_status = absl::UnimplementedError("no such sampler");
  Start(Plan(1));
  Run(absl::Seconds(30));
  ASSERT_FALSE(server_.released.empty());
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kRefused);
  EXPECT_EQ(server_.chains[chain_].reason, "no such sampler");
}

TEST_F(ChainBatchRunnerTest, ReportsAWrongJob) {
  script_.create_status = InvalidFields({{"model.torchscript", "gives Float [3, 2]"}});
  Start(Plan(1));
  Run(absl::Seconds(30));
  ASSERT_FALSE(server_.released.empty());
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kInvalid);
  EXPECT_NE(server_.released[0].reason.find("model.torchscript: gives Float [3, 2]"), std::string::npos);
}

TEST_F(ChainBatchRunnerTest, PausesAChainWhoseLeaseEndedAndStepsTheOthers) {
  script_.total_steps = 1000;
  Start(Plan(2));
  Run(absl::Seconds(2));
  server_.keep_none.insert(chain_);
  Run(absl::Seconds(30));
  const int64_t paused_at = server_.chains[chain_].progress.step;
  const int64_t other_at = server_.chains[ChainId("job-a", 1)].progress.step;
  EXPECT_GT(other_at, paused_at + 100);
  server_.keep_none.clear();
  Run(absl::Minutes(2));
  EXPECT_EQ(server_.chains[chain_].state, ChainState::kSucceeded);
  EXPECT_EQ(server_.chains[chain_].epoch, 1);
  ExpectPath(0, 1000);
  ExpectPath(1, 1000);
}

TEST_F(ChainBatchRunnerTest, ADivergedPausedRowDoesNotContinue) {
  script_.total_steps = script_.collect_every = 10000;
  script_.reports_late_by = 1;
  int64_t last = 0;
  script_.on_step = [&](int32_t index, int64_t step) {
    if (index == chain_.index) script_.diverges_at[index] = last = step;  // so that no report shows it
  };
  Start(Plan(2));
  Run(absl::Seconds(2));
  server_.keep_none.insert(chain_);
  Run(absl::Seconds(20));
  const int64_t paused_at = last;
  server_.keep_none.clear();
  Run(absl::Minutes(1));
  EXPECT_EQ(server_.chains[chain_].state, ChainState::kDiverged);
  EXPECT_EQ(last, paused_at);
}

TEST_F(ChainBatchRunnerTest, HandsAChainBackWithItsResumePointWhenAsked) {
  HandOneChainBack();
  EXPECT_EQ(server_.chains[chain_].state, ChainState::kPending);
  EXPECT_EQ(server_.chains[chain_].progress.resume_point->step, server_.chains[chain_].progress.step);
  ExpectPath(0, server_.chains[chain_].progress.step);
  EXPECT_EQ(server_.chains[ChainId("job-a", 1)].state, ChainState::kLeased);
}

// The state that the bytes hold is of another step than their record says.
TEST_F(ChainBatchRunnerTest, AChainWhoseResumePointHoldsAnotherStepWaitsForTheStore) {
  HandOneChainBack();
  FakeCoordinator::Chain& chain = server_.chains[chain_];
  ASSERT_EQ(chain.state, ChainState::kPending);
  const ResumePoint committed = *chain.progress.resume_point;
  chain.progress.resume_point->inline_bytes = "1";
  chain.progress.resume_point->sha256 = Sha256Hex("1");
  server_.released.clear();
  server_.grants_enabled = true;
  Run(absl::Minutes(1));
  ASSERT_THAT(server_.released, Not(IsEmpty()));
  for (const ReleasedChain& released : server_.released) {
    EXPECT_EQ(released.why, ReleasedChain::Why::kStore);
    EXPECT_THAT(released.reason, HasSubstr("the resume point of job-a/0 holds the state after step 1, "));
  }
  EXPECT_EQ(chain.progress.step, committed.step);
  EXPECT_EQ(script_.rows_of_steps.back(), 1u) << "the other chain goes on";
  chain.progress.resume_point = committed;
  Run(absl::Minutes(1));
  EXPECT_GT(chain.progress.step, committed.step);
  for (int32_t i = 0; i < 2; ++i) ExpectPath(i, server_.chains[ChainId("job-a", i)].progress.step);
}

TEST_F(ChainBatchRunnerTest, ADrainCommitsEverythingAndEnds) {
  script_.total_steps = 1000;
  Start(Plan(3));
  Run(absl::Seconds(3));
  worker_->session.Drain();
  Run(absl::Seconds(2));
  EXPECT_TRUE(worker_->session.drained());
  for (int32_t i = 0; i < 3; ++i) {
    const auto& chain = server_.chains[ChainId("job-a", i)];
    EXPECT_EQ(chain.state, ChainState::kPending);
    EXPECT_EQ(chain.progress.step, script_.steps_taken);
    ExpectPath(i, chain.progress.step);
  }
}

TEST_F(ChainBatchRunnerTest, ADrainWithoutAStepSinceTheLastCommitGivesTheLeaseBack) {
  Start(Plan(1));
  executor_.RunUntilIdle();
  worker_->session.Drain();
  Run(absl::Seconds(2));
  EXPECT_TRUE(worker_->session.drained());
  ASSERT_THAT(server_.released, SizeIs(1));
  EXPECT_EQ(server_.released[0].why, ReleasedChain::Why::kStopped);
}

TEST_F(ChainBatchRunnerTest, ForgetsAFencedChainAtTheNextBoundary) {
  script_.total_steps = 1000;
  Start(Plan(2));
  Run(absl::Seconds(2));
  server_.FenceByGrantElsewhere(chain_);
  Run(absl::Seconds(10));
  EXPECT_FALSE(worker_->held.Holds({chain_, 1}));
  EXPECT_EQ(script_.rows_of_steps.back(), 1u);
}

TEST_F(ChainBatchRunnerTest, ReportsStepsPerSecondAndTheReachedStep) {
  script_.total_steps = 1000;
  Start(Plan(1));
  Run(absl::Seconds(12));
  ASSERT_THAT(server_.requests.back().chains, SizeIs(1));
  EXPECT_GT(server_.requests.back().chains[0].step, 50);
  EXPECT_NEAR(server_.requests.back().chains[0].stats.steps_per_second, 10, 1e-6);
}

TEST_F(ChainBatchRunnerTest, TwoJobsTakeTurns) {
  server_.AddChains(AnalyticPlan("job-b", 1), 1);
  Start(Plan(1));
  Run(absl::Seconds(30));
  EXPECT_EQ(server_.chains[chain_].state, ChainState::kSucceeded);
  EXPECT_EQ(server_.chains[ChainId("job-b", 0)].state, ChainState::kSucceeded);
}

// The parameter counts calls that take a draw, save a resume point, remove a row or move a row: that call throws.
class AFailingCall : public ChainBatchRunnerTest, public ::testing::WithParamInterface<int> {};

TEST_P(AFailingCall, LosesNoDrawAndRepeatsNone) {
  script_.max_rows = 3;
  int calls = 0;
  script_.on_call = [&] {
    if (++calls == GetParam()) throw std::runtime_error("the device is busy");
  };
  Start(Plan(4));
  Run(absl::Minutes(2));
  EXPECT_GE(calls, GetParam());
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(server_.chains[ChainId("job-a", i)].state, ChainState::kSucceeded);
    ExpectPath(i, 20);
  }
  EXPECT_THAT(server_.released, Not(IsEmpty()));
  EXPECT_FALSE(worker_->session.stuck());
}

INSTANTIATE_TEST_SUITE_P(OfAll, AFailingCall, ::testing::Range(1, 50));

}  // namespace
}  // namespace chainfleet
