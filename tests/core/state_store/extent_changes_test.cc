// The contract of every StateStore for stopped sweep points and for added chains.
#include "core/base/limits.h"
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class ExtentChanges : public StateStoreTest {
 protected:
  JobRow JobAsLoaded() {
    store_ = harness_->Open();
    return store_->Load().value().jobs.at(0).row;
  }
  // Returns the reason why a job cannot have `chains` chains.
  std::string WhyNot(int32_t chains) {
    const ApplyResult result = Apply(change::ScaleJob{"job-aaaaaa", chains});
    EXPECT_TRUE(absl::IsFailedPrecondition(result.status)) << result.status;
    return std::string(result.status.message());
  }
};

TEST_P(ExtentChanges, AStoppedPointStaysStopped) {
  auto plan = std::make_shared<JobPlan>(*PlanOf("job-aaaaaa", 1));
  plan->spec.sweep.temperature = {1, 2};
  Apply(change::CreateJob{plan, ""});
  const ApplyResult stopped = Apply(change::StopPoint{"job-aaaaaa", 1, "R-hat \"1.001\" is below 1.01"});
  ASSERT_TRUE(stopped.status.ok()) << stopped.status;
  EXPECT_THAT(stopped.job->stopped, ElementsAre(Pair(1, "R-hat \"1.001\" is below 1.01")));
  EXPECT_THAT(Apply(change::StopPoint{"job-aaaaaa", 1, "again"}).job->stopped, stopped.job->stopped);
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kPause});
  EXPECT_EQ(JobAsLoaded().stopped, stopped.job->stopped);
  EXPECT_EQ(JobAsLoaded().intent, JobIntent::kPause);
  EXPECT_EQ(Apply(change::SetIntent{"job-aaaaaa", JobIntent::kRun}).job->stopped, stopped.job->stopped);
}

TEST_P(ExtentChanges, OnlyPointsOfAnUnfinishedJobAreStopped) {
  EXPECT_TRUE(absl::IsNotFound(Apply(change::StopPoint{"job-aaaaaa", 0, "enough"}).status));
  Create("job-aaaaaa", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply(change::StopPoint{"job-aaaaaa", 1, "enough"}).status));
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply(change::StopPoint{"job-aaaaaa", -1, "enough"}).status));
  Apply(change::RetireChain{chain_, "done"});
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply(change::StopPoint{"job-aaaaaa", 0, "enough"}).status));
  EXPECT_THAT(JobAsLoaded().stopped, IsEmpty());
}

TEST_P(ExtentChanges, AddedChainsWaitWhileOthersRun) {
  Create("job-aaaaaa", 1, "r1");
  const ChainRow row = Grant(chain_, 1).chains.at(0);
  const ApplyResult scaled = Apply(change::ScaleJob{"job-aaaaaa", 3});
  ASSERT_TRUE(scaled.status.ok()) << scaled.status;
  ASSERT_EQ(scaled.chains.size(), 2u);
  EXPECT_EQ(scaled.chains[0].id, (ChainId{"job-aaaaaa", 1}));
  EXPECT_EQ(scaled.chains[1].state, ChainState::kPending);
  EXPECT_EQ(scaled.job->plan->spec.chains, 3);
  EXPECT_TRUE(Apply(CommitAt(row, 10)).status.ok()) << "the old one goes on";
  EXPECT_TRUE(Grant({"job-aaaaaa", 2}, 1).status.ok());
  const JobRow loaded = JobAsLoaded();
  EXPECT_EQ(loaded.plan->spec.chains, 3);
  EXPECT_EQ(loaded.asked_chains, 1);
  EXPECT_EQ(RowOf({"job-aaaaaa", 2}).state, ChainState::kLeased);
  Apply(change::ScaleJob{"job-aaaaaa", 4});
  EXPECT_EQ(JobAsLoaded().asked_chains, 1) << "not what it was scaled to before";
}

TEST_P(ExtentChanges, AVersionHasTheDrawsOfAddedChainsFromThenOn) {
  Create("job-aaaaaa", 1);
  Apply(CommitAt(Grant(chain_, 1).chains.at(0), 10));
  ASSERT_EQ(Apply(change::CreateVersion{"job-aaaaaa"}).version->number, 1);
  Apply(change::ScaleJob{"job-aaaaaa", 2});
  Apply(CommitAt(Grant({"job-aaaaaa", 1}, 1).chains.at(0), 10));
  EXPECT_THAT(Apply(change::CreateVersion{"job-aaaaaa"}).version->draws_of_chain, ElementsAre(1, 1));
  EXPECT_THAT(store_->FindVersion("job-aaaaaa", 1)->draws_of_chain, ElementsAre(1));
}

TEST_P(ExtentChanges, TheSameNumberOfChainsIsNoChange) {
  Create("job-aaaaaa", 2);
  const ApplyResult same = Apply(change::ScaleJob{"job-aaaaaa", 2});
  EXPECT_TRUE(same.status.ok()) << same.status;
  EXPECT_THAT(same.chains, IsEmpty());
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kCancel});
  EXPECT_TRUE(Apply(change::ScaleJob{"job-aaaaaa", 2}).status.ok()) << "asked again by whom the answer did not reach";
  EXPECT_EQ(JobAsLoaded().asked_chains, 0);
}

TEST_P(ExtentChanges, ChainsAreAddedOnlyToAnUnfinishedJob) {
  EXPECT_TRUE(absl::IsNotFound(Apply(change::ScaleJob{"job-aaaaaa", 2}).status));
  Create("job-aaaaaa", 2);
  EXPECT_THAT(WhyNot(1), HasSubstr("2 chains"));
  EXPECT_THAT(WhyNot(limits::kMaxChainsPerJob + 1), HasSubstr(std::to_string(limits::kMaxChainsPerJob)));
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kPause});
  EXPECT_TRUE(Apply(change::ScaleJob{"job-aaaaaa", 3}).status.ok());
  Grant(chain_, 1);
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kRun});
  Grant(chain_, 1);
  Apply(change::StopPoint{"job-aaaaaa", 0, "max_draws 1000 is reached"});
  EXPECT_THAT(WhyNot(4), HasSubstr("max_draws 1000 is reached"));
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kFinish});
  EXPECT_THAT(WhyNot(4), HasSubstr("stopped early"));
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kCancel});
  EXPECT_THAT(WhyNot(4), HasSubstr("ended"));
  EXPECT_EQ(JobAsLoaded().plan->spec.chains, 3);
}

TEST_P(ExtentChanges, ASweepKeepsItsChains) {
  auto plan = std::make_shared<JobPlan>(*PlanOf("job-aaaaaa", 1));
  plan->spec.sweep.temperature = {1, 2};
  Apply(change::CreateJob{plan, ""});
  EXPECT_THAT(WhyNot(2), HasSubstr("sweep"));
  EXPECT_THAT(WhyNot(1), HasSubstr("sweep")) << "of each point or in all?";
}

TEST_P(ExtentChanges, AJobThatCalibratesASamplerKeepsItsChains) {
  auto plan = std::make_shared<JobPlan>(*PlanOf("job-aaaaaa", 1));
  plan->spec.kind = JobKind::kSbc;
  Apply(change::CreateJob{plan, ""});
  EXPECT_THAT(WhyNot(2), HasSubstr("kind: sbc"));
  EXPECT_EQ(ReasonOf(Apply(change::ScaleJob{"job-aaaaaa", 2}).status), "SBC_JOB");
}

TEST_P(ExtentChanges, AJobOfOneChainStartsNoOther) {
  const auto plan = PlanOf("job-aaaaaa", 3);
  const ApplyResult made = Apply(change::CreateJob{.plan = plan, .only_chain = 1});
  ASSERT_TRUE(made.status.ok()) << made.status;
  std::vector<ChainState> states;
  store_ = harness_->Open();
  const StoredState loaded = store_->Load().value();
  for (const ChainRow& chain : loaded.jobs.at(0).chains) states.push_back(chain.state);
  EXPECT_THAT(states, ElementsAre(ChainState::kCancelled, ChainState::kPending, ChainState::kCancelled));
  EXPECT_FALSE(loaded.jobs.at(0).row.finished_at);
  EXPECT_TRUE(absl::IsFailedPrecondition(Grant({"job-aaaaaa", 0}, 1).status));
  EXPECT_TRUE(Grant({"job-aaaaaa", 1}, 1).status.ok());
}

INSTANTIATE_TEST_SUITE_P(AllStores, ExtentChanges, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet
