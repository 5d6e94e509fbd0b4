// Tests the extent of a job's draws: stop rules, and added chains.
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/recording_store.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class DispatcherExtent : public DispatcherTest {
 protected:
  std::string CreateUntil(const StopRuleSpec& until, int chains, const SweepSpec& sweep = {}) {
    JobSpec spec = SmallSpec("job", chains);
    spec.until = until;
    spec.sweep = sweep;
    spec.trace_every = 1;
    return TryCreate(spec, "request").value().id;
  }
  // Holds and lists all existing chains.
  static constexpr int kSlots = 6;
  void LeaseAll() {
    Sync(&worker_);
    Sync(&worker_);
  }
  // Returns traces of these chains that agree and have a high ESS.
  static PointDiagnosis Agreement(const std::vector<int32_t>& chains, int32_t point = 0) {
    return {.point = point,
            .looked_at = chains,
            .values = 200,
            .diagnostics = {{.point = point, .quantity = "energy", .rhat = 1.001, .ess_bulk = 500, .ess_tail = 450}}};
  }
  void Diagnose(const std::string& job, const std::vector<PointDiagnosis>& points) {
    dispatcher_->TakeDiagnoses(job, points);
    executor_.RunUntilIdle();
  }
  void HandBackAll() {
    for (const auto stops = worker_.stops; const auto& [chain, how] : stops) {
      ASSERT_EQ(how, StopOrder::How::kHandBack);
      Advance(&worker_, chain, ChainState::kPending);
    }
    executor_.RunFor(limits::kSyncInterval);
  }
  absl::StatusOr<JobView> Scale(const std::string& job, int32_t chains) {
    return Wait<JobView>([&](auto done) { dispatcher_->ScaleJob(job, chains, done); });
  }

  const StopRuleSpec converged_{.rhat_below = 1.01, .ess_above = 400};
  FakeWorker worker_{"w1", kSlots};
};

TEST_F(DispatcherExtent, AJobEndsWhereItIsOnceItsTracesAgree) {
  const std::string job = CreateUntil(converged_, 2);
  LeaseAll();
  Advance(&worker_, {job, 0});
  Diagnose(job, {Agreement({0, 1})});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, ElementsAre(Pair(0, HasSubstr("R-hat 1.001 is below 1.01"))));
  Sync(&worker_);
  EXPECT_THAT(worker_.stops, UnorderedElementsAre(Pair(ChainId{job, 0}, StopOrder::How::kHandBack),
                                                  Pair(ChainId{job, 1}, StopOrder::How::kHandBack)));
  HandBackAll();
  const JobView view = dispatcher_->GetJob(job).value();
  EXPECT_EQ(view.state, JobState::kSucceeded);
  EXPECT_EQ(view.chains[0].num_draws, 2) << "what was drawn is kept";
  EXPECT_EQ(view.chains[1].num_draws, 1);
  EXPECT_THAT(view.chains[0].reason, HasSubstr("R-hat"));
  EXPECT_THAT(Pin(job, 0, false)->draws_of_chain, ElementsAre(2, 1));
}

TEST_F(DispatcherExtent, AHeldCallIsAnsweredWhenTheStopRuleIsMet) {
  const std::string job = CreateUntil(converged_, 2);
  LeaseAll();
  const auto held = Send(&worker_);
  ASSERT_FALSE(held.has());
  Diagnose(job, {Agreement({0, 1})});
  ASSERT_TRUE(held.has());
  EXPECT_THAT(held.get()->stop, SizeIs(2));
}

TEST_F(DispatcherExtent, AllContinuingChainsMustAgree) {
  const std::string job = CreateUntil(converged_, 3);
  LeaseAll();
  Diagnose(job, {Agreement({0, 1})});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, IsEmpty());
  Advance(&worker_, {job, 2}, ChainState::kDiverged);
  Diagnose(job, {Agreement({0, 1})});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, SizeIs(1));
  Sync(&worker_);
  HandBackAll();
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kSucceeded) << "the others have drawn enough";
}

TEST_F(DispatcherExtent, TracesOfAChainThatTheServerFailsAreForgotten) {
  const std::string job = CreateUntil(converged_, 3);
  LeaseAll();
  const ChainTrace trace{.point = 0, .quantities = {"energy"}, .steps = {1, 2, 3, 4}, .values = {4, 1, 3, 2}};
  for (int32_t chain = 0; chain < 3; ++chain) traces_.Add({job, chain}, trace, std::nullopt, {});
  GiveBack(&worker_, {job, 1}, ReleasedChain::Why::kInvalid);
  Sync(&worker_);
  ASSERT_EQ(Chain({job, 1}).state, ChainState::kFailed);
  const auto left = traces_.TracesOf(job, "energy");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_THAT(*left, ElementsAre(testing::Field(&TracedChain::chain, 0), testing::Field(&TracedChain::chain, 2)));
}

TEST_F(DispatcherExtent, DrawsAreCountedAtEachCommit) {
  const std::string job = CreateUntil({.max_draws = 3}, 2);
  LeaseAll();
  Advance(&worker_, {job, 0});
  Advance(&worker_, {job, 1});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, IsEmpty());
  Advance(&worker_, {job, 0});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, ElementsAre(Pair(0, "max_draws 3 is reached: 3 committed")));
  Sync(&worker_);
  HandBackAll();
  const JobView view = dispatcher_->GetJob(job).value();
  EXPECT_EQ(view.state, JobState::kSucceeded);
  EXPECT_EQ(view.chains[0].num_draws + view.chains[1].num_draws, 5) << "and one of each that was under way";
  EXPECT_EQ(view.stopped.at(0), "max_draws 3 is reached: 3 committed") << "as it was found";
}

TEST_F(DispatcherExtent, AJobOfOneChainLeasesNoOtherAndStopsAtItsDraws) {
  JobSpec spec = SmallSpec("job", 3);
  spec.until.max_draws = 2;
  const auto create = [&](int32_t only) {
    return Wait<JobView>([&](auto done) { dispatcher_->CreateJob(kDefaultTenant, spec, "", false, done, only); });
  };
  for (const int32_t none : {-1, 3}) {
    const auto violations = FieldViolationsOf(create(none).status());
    ASSERT_EQ(violations.size(), 1u);
    EXPECT_EQ(violations[0].path, "only_chain");
    EXPECT_THAT(violations[0].message, HasSubstr("only 0 to 2"));
  }
  const std::string job = create(2).value().id;
  LeaseAll();
  EXPECT_THAT(worker_.chains, ElementsAre(Pair(ChainId{job, 2}, testing::_)));
  Advance(&worker_, {job, 2});
  Advance(&worker_, {job, 2});
  Sync(&worker_);
  HandBackAll();
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kSucceeded);
}

TEST_F(DispatcherExtent, ChainsThatNeverStartedEndToo) {
  const std::string job = CreateUntil({.max_draws = 1}, kSlots + 2);
  LeaseAll();
  Advance(&worker_, {job, 0});
  executor_.RunFor(limits::kSyncInterval);
  EXPECT_EQ(Chain({job, kSlots + 1}).state, ChainState::kSucceeded);
  EXPECT_EQ(Chain({job, 0}).state, ChainState::kLeased) << "until its worker hands it back";
}

TEST_F(DispatcherExtent, EachPointOfASweepHasARuleOfItsOwn) {
  const std::string job = CreateUntil(converged_, 2, {.temperature = {1, 2}});  // chains 0 and 1, 2 and 3
  LeaseAll();
  PointDiagnosis apart = Agreement({0, 1}, 0);
  apart.diagnostics[0].rhat = 1.5;
  Diagnose(job, {apart, Agreement({2, 3}, 1)});
  Sync(&worker_);
  EXPECT_THAT(worker_.stops, UnorderedElementsAre(Pair(ChainId{job, 2}, StopOrder::How::kHandBack),
                                                  Pair(ChainId{job, 3}, StopOrder::How::kHandBack)));
  HandBackAll();
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kRunning);
  EXPECT_EQ(Chain({job, 2}).state, ChainState::kSucceeded);
  Diagnose(job, {Agreement({0, 1}, 0), Agreement({2, 3}, 1)});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, SizeIs(2));
}

TEST_F(DispatcherExtent, APointThatEndedByItselfIsNotStopped) {
  const std::string job = CreateUntil(converged_, 2, {.temperature = {1, 2}});
  LeaseAll();
  for (const int32_t chain : {0, 1}) Advance(&worker_, {job, chain}, ChainState::kSucceeded);
  Diagnose(job, {Agreement({0, 1}, 0)});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, IsEmpty());
}

TEST_F(DispatcherExtent, APointIsStoppedOnceAndAgainOnlyAfterAFullDisk) {
  RecordingStore store(database_.Open());
  StartOn(&store);
  const std::string job = CreateUntil(converged_, 2);
  LeaseAll();
  store.SetFull(true);
  const size_t before = store.group_sizes().size();
  dispatcher_->TakeDiagnoses(job, {Agreement({0, 1})});
  dispatcher_->TakeDiagnoses(job, {Agreement({0, 1})});
  executor_.RunUntilIdle();
  ASSERT_EQ(store.group_sizes().size(), before + 1);
  EXPECT_EQ(store.group_sizes().back(), 1) << "one was on the way already";
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, IsEmpty());
  store.SetFull(false);
  Diagnose(job, {Agreement({0, 1})});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, SizeIs(1));
  coordinator_.reset();
}

TEST_F(DispatcherExtent, AStoppedPointStaysStoppedAfterARestart) {
  const std::string job = CreateUntil(converged_, 1 + 1);
  LeaseAll();
  Diagnose(job, {Agreement({0, 1})});
  Start();
  Sync(&worker_);
  EXPECT_THAT(worker_.stops, SizeIs(2));
  HandBackAll();
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kSucceeded);
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, SizeIs(1));
}

TEST_F(DispatcherExtent, ChainsThatEndedBeforeARestartAreNotWaitedFor) {
  const std::string job = CreateUntil(converged_, 3);
  LeaseAll();
  Advance(&worker_, {job, 1}, ChainState::kSucceeded);
  Start();
  Diagnose(job, {Agreement({0})});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, IsEmpty()) << "one goes on that says nothing yet";
  Diagnose(job, {Agreement({0, 2})});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, SizeIs(1));
}

TEST_F(DispatcherExtent, DrawsThatWereEnoughBeforeARestartAreEnough) {
  const std::string job = CreateUntil({.max_draws = 1}, 1);
  LeaseAll();
  // The server ends between the commit and its effects.
  dispatcher_->CommitProgress(worker_.Made(worker_.NextCommit({job, 0})), [](const absl::StatusOr<CommitReply>&) {});
  executor_.RunOne();
  Start();
  executor_.RunUntilIdle();
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, SizeIs(1));
}

TEST_F(DispatcherExtent, APausedJobIsStoppedAndEndsWhenItIsResumed) {
  const std::string job = CreateUntil(converged_, 2);
  LeaseAll();
  ASSERT_TRUE(SetIntent(job, JobIntent::kPause).ok());
  Diagnose(job, {Agreement({0, 1})});
  Sync(&worker_);
  HandBackAll();
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kPaused);
  ASSERT_TRUE(SetIntent(job, JobIntent::kRun).ok());
  executor_.RunFor(limits::kSyncInterval);
  EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kSucceeded);
}

TEST_F(DispatcherExtent, AddedChainsAreGrantedWithAPlanThatHasThem) {
  const std::string job = Create("job", 2);
  LeaseAll();
  const JobView scaled = Scale(job, 4).value();
  EXPECT_THAT(scaled.chains, SizeIs(4));
  EXPECT_EQ(scaled.plan->spec.chains, 4);
  const SynchronizeReply reply = Sync(&worker_);
  ASSERT_THAT(reply.grants, SizeIs(2));
  for (const Grant& grant : reply.grants) {
    EXPECT_GE(grant.chain.index, 2);
    EXPECT_EQ(grant.plan->spec.chains, 4);
  }
  EXPECT_THAT(reply.stop, IsEmpty()) << "the others go on";
  Sync(&worker_);
  for (int32_t i = 0; i < 4; ++i) Advance(&worker_, {job, i}, ChainState::kSucceeded);
  const JobView view = dispatcher_->GetJob(job).value();
  EXPECT_EQ(view.state, JobState::kSucceeded);
  EXPECT_THAT(Pin(job, 0, false)->draws_of_chain, ElementsAre(1, 1, 1, 1));
}

TEST_F(DispatcherExtent, AScaledJobStillAnswersItsRequest) {
  const JobSpec spec = SmallSpec("job", 2);
  const std::string job = TryCreate(spec, "request")->id;
  ASSERT_TRUE(Scale(job, 3).ok());
  ASSERT_TRUE(Scale(job, 5).ok());
  Start();
  EXPECT_EQ(TryCreate(spec, "request")->id, job);
  EXPECT_EQ(ReasonOf(TryCreate(SmallSpec("job", 5), "request").status()), "REQUEST_ID_USED") << "not what was asked";
}

TEST_F(DispatcherExtent, AnAddedChainMustAgreeWithTheOthers) {
  const std::string job = CreateUntil(converged_, 2);
  LeaseAll();
  ASSERT_TRUE(Scale(job, 3).ok());
  Diagnose(job, {Agreement({0, 1})});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, IsEmpty());
  Diagnose(job, {Agreement({0, 1, 2})});
  EXPECT_THAT(dispatcher_->GetJob(job)->stopped, SizeIs(1));
  EXPECT_TRUE(absl::IsFailedPrecondition(Scale(job, 4).status())) << "it has enough";
}

TEST_F(DispatcherExtent, AMissingJobCannotBeScaled) { EXPECT_TRUE(absl::IsNotFound(Scale("job-aaaaaa", 2).status())); }

}  // namespace
}  // namespace chainfleet
