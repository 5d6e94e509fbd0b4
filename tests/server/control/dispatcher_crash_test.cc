// A chain that crashes its workers fails alone, and costs no other chain an attempt.
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class DispatcherCrash : public DispatcherTest {
 protected:
  // Takes the server's present answer without waiting for more.
  void Talk(FakeWorker* worker) {
    const auto answer = Send(worker);
    executor_.RunFor(absl::Seconds(1));
    if (answer.has() && answer.get().ok()) worker->Take(*answer.get());
  }
  // Commits one draw of each chain, or carries out its order: hands it back, or ends it at `draws`.
  void Step(FakeWorker* worker, int64_t draws) {
    const auto held = worker->chains;
    for (const auto& [chain, state] : held) {
      std::optional<ChainState> ends_as;
      if (worker->stops.contains(chain)) ends_as = ChainState::kPending;
      if (state.progress.num_draws + 1 >= draws) ends_as = ChainState::kSucceeded;
      Advance(worker, chain, ends_as);
    }
  }
  // A job of `chains` on one worker whose process died twice with all of them.
  std::string SuspectsOn(FakeWorker* worker, int chains) {
    const std::string job = Create("suspects", chains);
    for (int crash = 0; crash < limits::kCrashesUntilAlone; ++crash) {
      for (int calls = 0; calls < 40 && worker->chains.size() < static_cast<size_t>(chains); ++calls) Talk(worker);
      EXPECT_EQ(worker->chains.size(), static_cast<size_t>(chains)) << crash;
      worker->Restart();
    }
    return job;
  }
  // Calls until the worker has `chains`, for at most a minute.
  bool TalkUntil(FakeWorker* worker, size_t chains) {
    for (int calls = 0; calls < 60 && worker->chains.size() != chains; ++calls) Talk(worker);
    return worker->chains.size() == chains;
  }

  struct Outcome {
    int crashes = 0;
    int most_attempts = 0;  // any chain but the crasher
    bool done = false;
  };
  // The process of every worker that has `crasher` dies before it commits anything.
  Outcome Play(std::vector<FakeWorker>* workers, const ChainId& crasher, int64_t draws, bool restart_server = false) {
    Outcome outcome;
    for (int round = 0; round < 600 && !outcome.done; ++round) {
      for (FakeWorker& worker : *workers) {
        Talk(&worker);
        if (worker.chains.contains(crasher)) {
          ++outcome.crashes;
          worker.Restart();
          if (restart_server) Start();
        } else {
          Step(&worker, draws);
        }
      }
      const JobView job = dispatcher_->GetJob(crasher.job).value();
      for (const ChainView& chain : job.chains) {
        if (chain.id != crasher) outcome.most_attempts = std::max(outcome.most_attempts, chain.attempts);
      }
      outcome.done = IsFinal(job.state);
    }
    return outcome;
  }
  void ExpectOnlyCrasherFailed(const ChainId& crasher) {
    const JobView job = dispatcher_->GetJob(crasher.job).value();
    for (const ChainView& chain : job.chains) {
      EXPECT_EQ(chain.state, chain.id == crasher ? ChainState::kFailed : ChainState::kSucceeded) << chain.id.index;
    }
    EXPECT_EQ(Chain(crasher).attempts, limits::kMaxAttemptsWithoutProgress);
    EXPECT_THAT(Chain(crasher).reason, AllOf(HasSubstr("restarted"), HasSubstr("with this chain alone on it")));
  }
};

TEST_F(DispatcherCrash, CrasherFailsWithItsReasonWhileItsSevenMatesSucceed) {
  const ChainId crasher{Create("job", 8), 3};
  std::vector<FakeWorker> workers{FakeWorker("w1", 8)};
  const Outcome outcome = Play(&workers, crasher, 100);
  ASSERT_TRUE(outcome.done);
  ExpectOnlyCrasherFailed(crasher);
  EXPECT_EQ(outcome.crashes, limits::kMaxAttemptsWithoutProgress);
  EXPECT_EQ(outcome.most_attempts, limits::kCrashesUntilAlone) << "the mates pay for the shared crashes alone";
}

TEST_F(DispatcherCrash, CrasherFailsAloneOnALargerFleetToo) {
  const ChainId crasher{Create("job", 8), 0};
  std::vector<FakeWorker> workers{FakeWorker("w1", 4), FakeWorker("w2", 4), FakeWorker("w3", 4)};
  ASSERT_TRUE(Play(&workers, crasher, 100).done);
  ExpectOnlyCrasherFailed(crasher);
}

TEST_F(DispatcherCrash, SuspicionOutlivesServerRestartsAtEveryCrash) {
  const ChainId crasher{Create("job", 8), 3};
  std::vector<FakeWorker> workers{FakeWorker("w1", 8)};
  const Outcome outcome = Play(&workers, crasher, 100, /*restart_server=*/true);
  ASSERT_TRUE(outcome.done);
  ExpectOnlyCrasherFailed(crasher);
  EXPECT_EQ(outcome.most_attempts, limits::kCrashesUntilAlone);
}

TEST_F(DispatcherCrash, SuspectRunsAloneUntilItCommits) {
  FakeWorker worker("w1", 4);
  const std::string job = SuspectsOn(&worker, 1);
  const ChainId suspect{job, 0};
  Create("other", 2);
  ASSERT_TRUE(TalkUntil(&worker, 2)) << "the suspect rests a moment after its attempt";
  ASSERT_FALSE(worker.chains.contains(suspect));
  for (int i = 0; i < 60 && !worker.chains.contains(suspect); ++i) {
    Step(&worker, 1000);
    Talk(&worker);
  }
  ASSERT_EQ(worker.chains.size(), 1u) << "the worker was cleared for it";
  ASSERT_TRUE(worker.chains.contains(suspect));
  for (int i = 0; i < 60; ++i) Talk(&worker);
  EXPECT_EQ(worker.chains.size(), 1u) << "three slots are free, and nobody is placed beside it";
  Advance(&worker, suspect);
  Talk(&worker);
  EXPECT_EQ(worker.chains.size(), 3u);
  EXPECT_EQ(Chain(suspect).attempts, 0);
}

TEST_F(DispatcherCrash, ServerRestartDuringATurnGrantsNoOtherChain) {
  FakeWorker worker("w1", 4);
  const ChainId suspect{SuspectsOn(&worker, 1), 0};
  ASSERT_TRUE(TalkUntil(&worker, 1));
  Talk(&worker);
  Start();
  Create("other", 2);
  for (int i = 0; i < 10; ++i) Talk(&worker);
  EXPECT_EQ(worker.chains.size(), 1u);
  worker.Restart();
  Talk(&worker);
  EXPECT_EQ(Chain(suspect).attempts, 3) << "a crash alone counts";
}

TEST_F(DispatcherCrash, ChainsThatMakeRoomForASuspectLoseNothing) {
  FakeWorker worker("w1", 4), other("w2", 4);
  const ChainId suspect{SuspectsOn(&worker, 1), 0};
  ASSERT_TRUE(TalkUntil(&worker, 1));
  const std::string innocent = Create("other", 1);
  Talk(&other);
  ASSERT_TRUE(TalkUntil(&other, 1));
  Talk(&other);
  worker.Restart();  // the suspect's third crash; its worker does not return
  executor_.RunFor(kTermAndGrace - absl::Seconds(2));
  for (int i = 0; i < 60 && !other.chains.contains(suspect); ++i) {
    Talk(&other);
    for (const auto& [chain, how] : std::map(other.stops)) {
      EXPECT_EQ(how, StopOrder::How::kHandBack);
      GiveBack(&other, chain, ReleasedChain::Why::kStopped, "handed back before its first step");
    }
  }
  EXPECT_TRUE(other.chains.contains(suspect)) << "it does not wait for a worker to become idle by itself";
  EXPECT_EQ(Chain({innocent, 0}).state, ChainState::kPending);
  EXPECT_EQ(Chain({innocent, 0}).attempts, 0) << "a preemption that the server ordered is free";
}

TEST_F(DispatcherCrash, HalfTheFleetContinuesWithOtherWork) {
  FakeWorker first("w1", 8);
  const std::string job = SuspectsOn(&first, 8);
  std::vector<FakeWorker> workers{first, FakeWorker("w2", 4), FakeWorker("w3", 4), FakeWorker("w4", 4)};
  const std::string other = Create("other", 40);
  size_t most = 0;
  for (int round = 0; round < 30; ++round) {
    size_t solo = 0;
    for (FakeWorker& worker : workers) {
      Talk(&worker);
      const auto suspects = std::ranges::count_if(worker.chains, [&](const auto& c) { return c.first.job == job; });
      solo += suspects > 0;
      EXPECT_TRUE(suspects == 0 || worker.chains.size() == 1u);
      for (const auto& [chain, how] : std::map(worker.stops)) Advance(&worker, chain, ChainState::kPending);
    }
    most = std::max(most, solo);
  }
  EXPECT_EQ(most, 2u) << "and suspects do not wait for each other";
}

TEST_F(DispatcherCrash, OnlyWorkerRestsBetweenTwoTurns) {
  FakeWorker worker("w1", 4);
  const std::string job = SuspectsOn(&worker, 2);
  ASSERT_TRUE(TalkUntil(&worker, 1));
  Talk(&worker);
  const ChainId first = worker.chains.begin()->first;
  Advance(&worker, first);
  const absl::Duration cleared_at = clock_.Monotonic();
  while (worker.stops.empty() && clock_.Monotonic() - cleared_at < 2 * limits::kSoloRest) Talk(&worker);
  EXPECT_TRUE(worker.stops.contains(first));
  EXPECT_GE(clock_.Monotonic() - cleared_at, limits::kSoloRest);
  EXPECT_LT(clock_.Monotonic() - cleared_at, limits::kSoloRest + absl::Seconds(5));
}

TEST_F(DispatcherCrash, NextTurnBeginsAsSoonAsOneEnds) {
  FakeWorker first("w1", 4), second("w2", 4);
  SuspectsOn(&first, 2);
  ASSERT_TRUE(TalkUntil(&first, 1));
  Talk(&first);
  const auto idle = Send(&second);
  executor_.RunFor(absl::Seconds(2));
  ASSERT_FALSE(idle.has()) << "half of two workers";
  Advance(&first, first.chains.begin()->first);
  executor_.RunFor(2 * limits::kPolicyInterval);
  ASSERT_TRUE(idle.has());
  EXPECT_EQ(idle.get()->grants.size(), 1u);
}

TEST_F(DispatcherCrash, OthersComeFirstWhereATurnHasJustEnded) {
  FakeWorker worker("w1", 4);
  const ChainId suspect{SuspectsOn(&worker, 1), 0};
  ASSERT_TRUE(TalkUntil(&worker, 1));
  Talk(&worker);
  Create("other", 2);
  worker.Restart();
  Send(&worker);
  worker.Restart();  // again, before it took anything
  executor_.RunFor(absl::Seconds(10));
  ASSERT_EQ(Chain(suspect).state, ChainState::kPending);
  ASSERT_TRUE(TalkUntil(&worker, 2));
  EXPECT_FALSE(worker.chains.contains(suspect));
}

TEST_F(DispatcherCrash, SuspectDoesNotWaitForAWorkerThatFellSilentWhileItMadeRoom) {
  FakeWorker worker("w1", 4), silent("w2", 4);
  const ChainId suspect{SuspectsOn(&worker, 1), 0};
  Create("other", 1);
  ASSERT_TRUE(TalkUntil(&silent, 1));
  executor_.RunFor(absl::Seconds(5));
  Talk(&silent);
  ASSERT_FALSE(silent.stops.empty()) << "w2 is cleared for the suspect, w1 is gone";
  executor_.RunFor(limits::kLeaseTtl);
  FakeWorker third("w3", 4);
  ASSERT_TRUE(TalkUntil(&third, 1));
  EXPECT_TRUE(third.chains.contains(suspect));
}

TEST_F(DispatcherCrash, CrashInCompanyIsNoChainsLastAttempt) {
  FakeWorker worker("w1", 4);
  const std::string job = Create("job", 2);
  const ChainId unlucky{job, 0};
  for (int i = 1; i < limits::kMaxAttemptsWithoutProgress; ++i) {
    ASSERT_TRUE(TalkUntil(&worker, 2)) << i;
    GiveBack(&worker, unlucky, ReleasedChain::Why::kFailed, "out of memory");
    Talk(&worker);
  }
  ASSERT_TRUE(TalkUntil(&worker, 2));
  Talk(&worker);
  ASSERT_EQ(Chain(unlucky).attempts, limits::kMaxAttemptsWithoutProgress - 1);
  worker.Restart();
  Talk(&worker);
  EXPECT_FALSE(IsFinal(Chain(unlucky).state));
}

TEST_F(DispatcherCrash, LossOfAGrantThatWasNeverSentIsFree) {
  FakeWorker worker("w1");
  const ChainId held = LeaseOne(&worker);
  const ChainId granted{Create("other", 1), 0};
  executor_.RunFor(absl::Seconds(1));
  ASSERT_EQ(Chain(granted).state, ChainState::kLeased);
  worker.Restart();
  Talk(&worker);
  EXPECT_EQ(Chain(held).attempts, 1);
  EXPECT_EQ(Chain(granted).attempts, 0);
}

TEST_F(DispatcherCrash, DrainedLeaseIsFree) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  worker.draining = true;
  Sync(&worker);
  EXPECT_THAT(worker.stops, ElementsAre(testing::Pair(chain, StopOrder::How::kHandBack)));
  GiveBack(&worker, chain, ReleasedChain::Why::kStopped);
  Sync(&worker);
  EXPECT_EQ(Chain(chain).state, ChainState::kPending);
  EXPECT_EQ(Chain(chain).attempts, 0);
}

TEST_F(DispatcherCrash, ProcessThatComesBackAfterItsLeaseHadNotCrashed) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  for (int i = 0; i < 4; ++i) {
    executor_.RunFor(kTermAndGrace * 2);
    ASSERT_EQ(Chain(chain).state, ChainState::kPending);
    ASSERT_THAT(Sync(&worker).keep, ElementsAre(chain)) << i << ": a suspect would have been asked back";
  }
}

TEST_F(DispatcherCrash, SuspectWhoseProcessComesBackCommitsWhatItHasFirst) {
  FakeWorker worker("w1", 4);
  const ChainId suspect{SuspectsOn(&worker, 1), 0};
  ASSERT_TRUE(TalkUntil(&worker, 1));
  Talk(&worker);
  executor_.RunFor(kTermAndGrace * 2);
  ASSERT_EQ(Chain(suspect).state, ChainState::kPending);
  Talk(&worker);
  ASSERT_THAT(worker.stops, ElementsAre(testing::Pair(suspect, StopOrder::How::kHandBack)));
  Advance(&worker, suspect, ChainState::kPending);
  EXPECT_EQ(Chain(suspect).attempts, 0);
}

TEST_F(DispatcherCrash, StopThatWasTakenBackMeanwhileIsFreeToo) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ASSERT_TRUE(SetIntent(chain.job, JobIntent::kPause).ok());
  Sync(&worker);
  ASSERT_TRUE(worker.stops.contains(chain));
  ASSERT_TRUE(SetIntent(chain.job, JobIntent::kRun).ok());
  GiveBack(&worker, chain, ReleasedChain::Why::kStopped, "handed back before its first step");
  Talk(&worker);
  EXPECT_EQ(Chain(chain).attempts, 0);
}

TEST_F(DispatcherCrash, DeviceThatHangsIsLostWithAllItsChains) {
  FakeWorker worker("w1", 4);
  const std::string job = Create("job", 2);
  for (int hang = 0; hang < limits::kCrashesUntilAlone; ++hang) {
    ASSERT_TRUE(TalkUntil(&worker, 2));
    for (const int32_t chain : {0, 1}) GiveBack(&worker, {job, chain}, ReleasedChain::Why::kHung, "no step");
    Talk(&worker);
  }
  ASSERT_TRUE(TalkUntil(&worker, 1));
  for (int i = 0; i < 20; ++i) Talk(&worker);
  EXPECT_EQ(worker.chains.size(), 1u) << "both are suspects";
}

}  // namespace
}  // namespace chainfleet
