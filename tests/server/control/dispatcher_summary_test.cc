#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class DispatcherSummary : public DispatcherTest {};

TEST_F(DispatcherSummary, SumsOverTheChainsOfEachJobNewestFirst) {
  const std::string older = Create("older", 3), newer = Create("newer", 2);
  FakeWorker worker("w1", 3);
  for (int i = 0; i < 3; ++i) Sync(&worker);
  ASSERT_THAT(worker.chains, SizeIs(3));
  Advance(&worker, {older, 0});
  Advance(&worker, {older, 0});
  Advance(&worker, {older, 1});
  Advance(&worker, {older, 2}, ChainState::kDiverged);
  const FleetSummary summary = dispatcher_->Summary(10);
  ASSERT_THAT(summary.jobs, SizeIs(2));
  EXPECT_EQ(summary.jobs[0].id, newer);
  const JobSummary& job = summary.jobs[1];
  EXPECT_EQ(job.id, older);
  EXPECT_EQ(job.state, JobState::kRunning);
  EXPECT_THAT(job.chains, UnorderedElementsAre(Pair(ChainState::kLeased, 2), Pair(ChainState::kDiverged, 1)));
  EXPECT_EQ(job.num_draws, 4);
  EXPECT_EQ(job.step, 20 + 10 + 10);
  EXPECT_EQ(job.total_steps, 3000);
  EXPECT_EQ(job.energy_sum, 20 + 10);
  EXPECT_EQ(job.energy_max, 20);
  ASSERT_THAT(summary.running, SizeIs(2));
  EXPECT_EQ(summary.running[0].id, (ChainId{older, 0}));
  EXPECT_EQ(summary.running[0].step, 20);
  EXPECT_EQ(summary.running[0].num_draws, 2);
  EXPECT_EQ(summary.running[0].stats.energy, 20);
}

TEST_F(DispatcherSummary, AJobWhoseChainsEndedKeepsItsSums) {
  const std::string ended = Create("ended", 2);
  FakeWorker worker("w1", 2);
  for (int i = 0; i < 3; ++i) Sync(&worker);
  ASSERT_THAT(worker.chains, SizeIs(2));
  Advance(&worker, {ended, 0});
  Advance(&worker, {ended, 0}, ChainState::kSucceeded);
  Advance(&worker, {ended, 1}, ChainState::kDiverged);
  const FleetSummary summary = dispatcher_->Summary(10);
  ASSERT_THAT(summary.jobs, SizeIs(1));
  const JobSummary& job = summary.jobs[0];
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_THAT(job.chains, UnorderedElementsAre(Pair(ChainState::kSucceeded, 1), Pair(ChainState::kDiverged, 1)));
  EXPECT_EQ(job.num_draws, 3);
  EXPECT_EQ(job.step, 20 + 10);
  EXPECT_EQ(job.total_steps, 2000);
  EXPECT_EQ(job.stepped, 0);
  EXPECT_THAT(summary.running, SizeIs(0));
}

TEST_F(DispatcherSummary, AChainThatHasNotSteppedIsNotInTheEnergiesOfItsJob) {
  const std::string job = Create("job", 2);
  FakeWorker worker("w1", 2);
  for (int i = 0; i < 3; ++i) Sync(&worker);
  ASSERT_THAT(worker.chains, SizeIs(2));
  EXPECT_EQ(dispatcher_->Summary(2).jobs[0].stepped, 0);
  ProgressCommit commit = worker.NextCommit({job, 1});
  commit.stats.energy = -7;
  ASSERT_TRUE(Commit(worker, commit).ok());
  const JobSummary sums = dispatcher_->Summary(2).jobs[0];
  EXPECT_EQ(sums.stepped, 1);
  EXPECT_EQ(sums.energy_sum, -7);
  EXPECT_EQ(sums.energy_max, -7) << "0 would be larger";
}

TEST_F(DispatcherSummary, SumsWhatRunningChainsThatSteppedMeasured) {
  const std::string job = Create("job", 4);
  FakeWorker worker("w1", 4);
  for (int i = 0; i < 3; ++i) Sync(&worker);
  ASSERT_THAT(worker.chains, SizeIs(4));
  for (int32_t i = 0; i < 3; ++i) {  // the last of all has not stepped
    ProgressCommit commit = worker.NextCommit({job, i});
    commit.stats = {.energy = 1, .step_size = 0.25, .temperature = 2, .anchor_distance = 4};
    if (i == 1) commit.stats.metropolis = MetropolisStats{.acceptance = 0.75};
    if (i == 2) commit.ends_as = ChainState::kDiverged;
    ASSERT_TRUE(Commit(worker, commit).ok());
  }
  const JobSummary sums = dispatcher_->Summary(0).jobs[0];
  EXPECT_EQ(sums.stepped, 2);
  EXPECT_EQ(sums.step_size_sum, 0.5);
  EXPECT_EQ(sums.temperature_sum, 4);
  EXPECT_EQ(sums.anchor_distance_sum, 8);
  EXPECT_EQ(sums.proposing, 1);
  EXPECT_EQ(sums.acceptance_sum, 0.75);
}

TEST_F(DispatcherSummary, ReportsTheDrawsThatTheStopRuleNeedsOverAllPoints) {
  Create("without", 1);
  JobSpec spec = SmallSpec("with", 4);
  spec.until.max_draws = 30;
  ASSERT_TRUE(TryCreate(spec).ok());
  const FleetSummary summary = dispatcher_->Summary(1);
  EXPECT_EQ(summary.jobs[0].max_draws, 30 * NumPoints(spec.sweep));
  EXPECT_EQ(summary.jobs[1].max_draws, 0);
}

TEST_F(DispatcherSummary, NamesNoMoreRunningChainsThanAskedFor) {
  Create("many", 4);
  FakeWorker worker("w1", 4);
  for (int i = 0; i < 3; ++i) Sync(&worker);
  const FleetSummary summary = dispatcher_->Summary(3);
  EXPECT_THAT(summary.running, SizeIs(3));
  EXPECT_EQ(summary.jobs[0].chains.at(ChainState::kLeased), 4);
}

}  // namespace
}  // namespace chainfleet
