#include "server/control/event_log.h"

#include "core/base/limits.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EventLogTest : public testing::Test {
 protected:
  void Add(const std::string& job, const std::string& reason) {
    log_.Add(LogLevel::kInfo, "event", {{"job", job}, {"reason", reason}});
  }
  FakeClock clock_;
  EventLog log_{&clock_, 1};
};

TEST_F(EventLogTest, KeepsTheNewestOfAJobAndSaysThatOlderOnesAreGone) {
  log_.Open("job", /*restored=*/false);
  Add("job", "first");
  EXPECT_EQ(log_.After("job", 0).front()->message, "event");
  for (int i = 0; i < limits::kMaxJobEvents; ++i) Add("job", "later");
  const auto events = log_.After("job", 0);
  ASSERT_EQ(events.size(), static_cast<size_t>(limits::kMaxJobEvents) + 1);
  EXPECT_EQ(events[0]->message, "earlier events are not kept");
  EXPECT_EQ(events[1]->fields.at("reason"), "later");
  EXPECT_EQ(log_.After("job", events[0]->number).size(), static_cast<size_t>(limits::kMaxJobEvents)) << "told once";
  for (size_t i = 1; i < events.size(); ++i) EXPECT_LT(events[i - 1]->number, events[i]->number);
}

TEST_F(EventLogTest, NumbersRiseOverRestartsSoThatAFollowerMissesNothing) {
  log_.Open("job", /*restored=*/false);
  for (int i = 0; i < 10; ++i) Add("job", "before");
  const int64_t seen = log_.After("job", 0).back()->number;
  EventLog restarted(&clock_, 2);
  restarted.Open("job", /*restored=*/true);
  restarted.Add(LogLevel::kInfo, "after", {{"job", "job"}});
  const auto events = restarted.After("job", seen);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_THAT(events[0]->fields.at("reason"), HasSubstr("began or took over"));
  EXPECT_EQ(events[1]->message, "after");
}

TEST_F(EventLogTest, ANoisyJobLosesItsOwnEventsWhenAllAreTooMany) {
  const std::string text(limits::kMaxEventBytes, 'x');
  log_.Open("quiet", false);
  Add("quiet", "alone");
  const int64_t jobs = limits::kEventsBytes / (limits::kMaxJobEvents * limits::kMaxEventBytes) + 1;
  for (int64_t job = 0; job < jobs; ++job) {
    log_.Open(std::to_string(job), false);
    for (int i = 0; i < limits::kMaxJobEvents; ++i) Add(std::to_string(job), text);
  }
  int64_t bytes = 0;
  for (int64_t job = 0; job < jobs; ++job) {
    for (const auto& event : log_.After(std::to_string(job), 0))
      bytes += static_cast<int64_t>(event->fields.at("reason").size());
  }
  EXPECT_LT(bytes, limits::kEventsBytes);
  EXPECT_GT(bytes, limits::kEventsBytes / 2);
  ASSERT_EQ(log_.After("quiet", 0).size(), 1u);
  EXPECT_EQ(log_.After("quiet", 0)[0]->fields.at("reason"), "alone");
}

TEST_F(EventLogTest, CutsLongTextsBetweenTwoCharacters) {
  log_.Open("job", false);
  std::string text = "x";
  while (text.size() < 2 * limits::kMaxEventBytes) text += "\u00e9";
  Add("job", text);
  const std::string cut = log_.After("job", 0)[0]->fields.at("reason");
  EXPECT_LE(cut.size(), static_cast<size_t>(limits::kMaxEventBytes));
  EXPECT_EQ(cut.size() % 2, 1u) << "half a character";
}

TEST_F(EventLogTest, AClosedLogTakesNothingAndHoldsNothing) {
  log_.Open("job", false);
  Add("job", "one");
  log_.Close("job");
  Add("job", "two");
  EXPECT_TRUE(log_.After("job", 0).empty());
}

class JobEvents : public DispatcherTest {
 protected:
  // "message" of the whole job, "message 0" of its first chain.
  std::vector<std::string> Messages(const std::string& job) {
    std::vector<std::string> messages;
    for (const auto& event : coordinator_->events()->After(job, 0)) {
      messages.push_back(event->message + (event->chain ? " " + std::to_string(*event->chain) : ""));
    }
    return messages;
  }
  std::string LastReason(const std::string& job) {
    return coordinator_->events()->After(job, 0).back()->fields.at("reason");
  }
};

TEST_F(JobEvents, AJobIsSubmittedPausedResumedAndEnds) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ASSERT_TRUE(SetIntent("job", JobIntent::kPause).ok());
  ASSERT_TRUE(SetIntent("job", JobIntent::kPause).ok());
  ASSERT_TRUE(SetIntent("job", JobIntent::kRun).ok());
  Advance(&worker, chain, ChainState::kSucceeded);
  EXPECT_THAT(Messages(chain.job), ElementsAre("job submitted", "lease granted 0", "job paused", "job resumed",
                                               "chain succeeded 0", "job ended"));
  const auto end = coordinator_->events()->After(chain.job, 0).back();
  EXPECT_EQ(end->fields, (std::map<std::string, std::string>{{"draws", "1"}, {"state", "SUCCEEDED"}}));
}

TEST_F(JobEvents, AChainIsLostAndItsStaleCommitIsRejectedOnce) {
  FakeWorker lost("w1"), other("w2");
  const ChainId chain = LeaseOne(&lost);
  Advance(&lost, chain);
  const ProgressCommit stale = lost.NextCommit(chain);
  executor_.RunFor(kTermAndGrace + absl::Seconds(1));
  EXPECT_EQ(LastReason(chain.job), "worker w1 did not renew its lease");
  Sync(&other);
  ASSERT_TRUE(other.chains.contains(chain));
  const auto granted = coordinator_->events()->After(chain.job, 0).back();
  EXPECT_EQ(granted->fields.at("worker"), "w2");
  EXPECT_EQ(granted->fields.at("step"), "10") << "it resumes from its last commit";
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Commit(lost, stale).ok());
  EXPECT_THAT(Messages(chain.job),
              ElementsAre("job submitted", "lease granted 0", "lease ended 0", "lease granted 0", "commit rejected 0"));
  EXPECT_EQ(coordinator_->events()->After(chain.job, 0).back()->fields.at("worker"), "w1");
}

TEST_F(JobEvents, ACommitOfAWorkerOfAnotherTenantIsAnsweredAsForNoChainAndLeavesNoEvent) {
  FakeWorker worker("w1"), stranger("w2");
  const ChainId chain = LeaseOne(&worker);
  stranger.names_begin_with = worker.names_begin_with;
  stranger.chains = worker.chains;
  stranger.chains[chain].epoch = 7;
  const auto commit = [&](const ProgressCommit& wanted, const std::string& tenant) {
    return Wait<CommitReply>([&](auto done) {
             dispatcher_->CommitProgress(stranger.Made(wanted), done, Admission{"token", tenant});
           })
        .status();
  };
  ProgressCommit step = stranger.NextCommit(chain);
  step.segment.reset();
  ProgressCommit absent = step;
  absent.chain.job = "none-aaaaaa";
  ProgressCommit fresh = step;  // a replay of the chain's beginning
  fresh.resume_point = {};
  const std::vector<std::string> before = Messages(chain.job);
  for (const ProgressCommit& wanted : {step, fresh}) {
    const absl::Status refused = commit(wanted, "vision");
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_EQ(ReasonOf(refused), "LEASE_FENCED");
    EXPECT_EQ(std::string(refused.message()), "chain " + ToString(chain) + " does not exist, drop it");
  }
  const absl::Status of_none = commit(absent, "vision");
  EXPECT_EQ(std::string(of_none.message()), "chain " + ToString(absent.chain) + " does not exist, drop it");
  EXPECT_EQ(Messages(chain.job), before);
  EXPECT_FALSE(commit(step, kDefaultTenant).ok());
  EXPECT_EQ(Messages(chain.job).back(), "commit rejected 0") << "of its own tenant";
}

TEST_F(JobEvents, AChainDivergesAndItsJobFails) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  ProgressCommit commit = worker.NextCommit(chain);
  commit.ends_as = ChainState::kDiverged;
  commit.reason = "energy is not finite";
  ASSERT_TRUE(Commit(worker, commit).ok());
  const auto events = coordinator_->events()->After(chain.job, 0);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2]->message, "chain diverged");
  EXPECT_EQ(events[2]->fields.at("reason"), "energy is not finite");
  EXPECT_EQ(events[3]->fields.at("state"), "FAILED");
  EXPECT_TRUE(events[2]->level == LogLevel::kWarning && events[3]->level == LogLevel::kWarning);
}

TEST_F(JobEvents, BeginAnewAfterARestartAndEndWithTheJob) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Start();
  EXPECT_THAT(Messages(chain.job), ElementsAre("earlier events are not kept"));
  ASSERT_TRUE(SetIntent("job", JobIntent::kDelete).ok());
  EXPECT_THAT(Messages(chain.job), ElementsAre("earlier events are not kept", "job deleted"));
  executor_.RunFor(limits::kPredictDeadline + absl::Seconds(1));
  EXPECT_THAT(Messages(chain.job), ElementsAre());
}

}  // namespace
}  // namespace chainfleet
