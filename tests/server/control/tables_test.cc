// LeaseTable, JobTable and Fleet: plain data.
#include <limits>
#include <memory>
#include <utility>

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/control/fleet.h"
#include "server/control/job_table.h"
#include "server/control/lease_table.h"

namespace chainfleet {
namespace {

Lease LeaseOf(int32_t chain, const std::string& worker, absl::Duration ends) {
  return {{"job-aaaaaa", chain}, 1, worker, worker + "-1", ends};
}

TEST(LeaseTable, EndsLeasesByTimeAndTellsTheNext) {
  LeaseTable table;
  table.Put(LeaseOf(0, "w1", absl::Seconds(20)));
  table.Put(LeaseOf(1, "w1", absl::Seconds(10)));
  table.Put(LeaseOf(2, "w2", absl::Seconds(30)));
  EXPECT_EQ(table.NextEnd(), absl::Seconds(10));
  const std::vector<Lease*> ended = table.TakeEnded(absl::Seconds(20));
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0]->chain.index, 1);
  EXPECT_EQ(ended[1]->chain.index, 0);
  EXPECT_EQ(table.NextEnd(), absl::Seconds(30));
}

TEST(LeaseTable, GivesAnEndedLeaseOnceForEachChangeOfItsChain) {
  LeaseTable table;
  Lease* lease = table.Put(LeaseOf(0, "w1", absl::Seconds(20)));
  EXPECT_THAT(table.TakeEnded(absl::Seconds(20)), testing::ElementsAre(lease));
  EXPECT_THAT(table.TakeEnded(absl::Seconds(20)), testing::IsEmpty()) << "its end is on the way to the store";
  table.LookAgain(lease->chain);
  EXPECT_THAT(table.TakeEnded(absl::Seconds(20)), testing::ElementsAre(lease));
  table.EndAt(lease, absl::Seconds(21), {.reason = "the store was full", .given_back = true});
  EXPECT_THAT(table.TakeEnded(absl::Seconds(21)), testing::ElementsAre(lease));
  table.Remove({"job-aaaaaa", 0});
  table.LookAgain({"job-aaaaaa", 0});
  EXPECT_EQ(table.NextEnd(), std::nullopt);
}

TEST(LeaseTable, ExtendNeverShortensAndNeverRevivesAnEndingLease) {
  LeaseTable table;
  Lease* lease = table.Put(LeaseOf(0, "w1", absl::Seconds(20)));
  table.Extend(lease, absl::Seconds(10));
  EXPECT_EQ(lease->ends, absl::Seconds(20));
  table.EndAt(lease, absl::Seconds(5), {.reason = "refused", .given_back = true});
  table.Extend(lease, absl::Seconds(90));
  EXPECT_EQ(table.NextEnd(), absl::Seconds(5));
}

TEST(LeaseTable, MovesALeaseFromItsGrantToItsStop) {
  LeaseTable table;
  Lease* lease = table.Put(LeaseOf(0, "w1", absl::Seconds(20)));
  EXPECT_TRUE(lease->unseen() && !lease->committed());
  table.Move(lease, LeaseState::kOffered);
  lease->grant = std::make_shared<const Grant>();
  EXPECT_TRUE(lease->unseen() && lease->committed());
  table.Move(lease, LeaseState::kDelivered);
  EXPECT_TRUE(lease->seen() && lease->grant != nullptr) << "the reply may be lost";
  table.Move(lease, LeaseState::kHeld);
  EXPECT_EQ(lease->grant, nullptr) << "its worker has the chain";
  table.Move(lease, LeaseState::kStopping);
  EXPECT_TRUE(lease->stopping());
}

TEST(LeaseTableDeathTest, RefusesAMoveThatSkipsOrGoesBack) {
  LeaseTable table;
  Lease* lease = table.Put(LeaseOf(0, "w1", absl::Seconds(20)));
  EXPECT_DEATH(table.Move(lease, LeaseState::kDelivered), "from 0 to 4");
  table.Move(lease, LeaseState::kOffered);
  EXPECT_DEATH(table.Move(lease, LeaseState::kStopping), "from 3 to 6");
  EXPECT_DEATH(table.Move(lease, LeaseState::kGranting), "from 3 to 0");
}

TEST(LeaseTable, CountsTheChainsOfAWorker) {
  LeaseTable table;
  table.Put(LeaseOf(0, "w1", absl::Seconds(20)));
  table.Put(LeaseOf(1, "w1", absl::Seconds(20)));
  table.Put(LeaseOf(1, "w2", absl::Seconds(20)));  // replaces
  EXPECT_EQ(table.NumOfWorker("w1"), 1);
  EXPECT_EQ(table.NumOfWorker("w2"), 1);
  table.Remove({"job-aaaaaa", 1});
  EXPECT_EQ(table.NumOfWorker("w2"), 0);
  EXPECT_TRUE(table.OfWorker("w2").empty());
  EXPECT_EQ(table.Find({"job-aaaaaa", 1}), nullptr);
}

TEST(LeaseTable, SumsTheMemoryOfTheChainsOfAWorker) {
  LeaseTable table;
  const auto put = [&](int32_t chain, const std::string& worker, int64_t bytes) {
    Lease lease = LeaseOf(chain, worker, absl::Seconds(20));
    lease.bytes = bytes;
    return table.Put(std::move(lease));
  };
  Lease* first = put(0, "w1", 100);
  put(1, "w1", 30);
  EXPECT_EQ(table.BytesOfWorker("w1"), 130);
  table.SetBytes(first, 70);
  EXPECT_EQ(first->bytes, 70);
  EXPECT_EQ(table.BytesOfWorker("w1"), 100);
  put(1, "w2", 40);  // replaces
  EXPECT_EQ(table.BytesOfWorker("w1"), 70);
  EXPECT_EQ(table.BytesOfWorker("w2"), 40);
  table.Remove({"job-aaaaaa", 0});
  EXPECT_EQ(table.BytesOfWorker("w1"), 0);
}

TEST(LeaseTable, KnowsWhichLeasesSharedAProcess) {
  LeaseTable table;
  const Lease* first = table.Put(LeaseOf(0, "w1", absl::Seconds(20)));
  const Lease* elsewhere = table.Put(LeaseOf(1, "w2", absl::Seconds(20)));
  Lease reborn = LeaseOf(2, "w1", absl::Seconds(20));
  reborn.incarnation = "w1-2";
  const Lease* other_process = table.Put(reborn);
  EXPECT_FALSE(first->in_company || elsewhere->in_company || other_process->in_company);
  table.Put(LeaseOf(3, "w1", absl::Seconds(20)));
  EXPECT_TRUE(first->in_company);
  table.Remove({"job-aaaaaa", 3});
  EXPECT_TRUE(table.Put(LeaseOf(0, "w1", absl::Seconds(30)))->in_company) << "the same lease again";
  EXPECT_FALSE(elsewhere->in_company || other_process->in_company);
}

StoredJob Job(int64_t sequence, const std::string& id, const std::string& name, JobIntent intent = JobIntent::kRun) {
  JobPlan plan;
  plan.job = id;
  plan.spec.name = name;
  plan.spec.num_steps = 10;
  plan.spec.chains = 2;
  plan.spec.model.kind = GaussianPotential{};
  plan.spec.schedule.kind = ConstantSchedule{0.1};
  StoredJob job;
  job.row.sequence = sequence;
  job.row.id = id;
  job.row.plan = std::make_shared<const JobPlan>(plan);
  job.row.intent = intent;
  for (int32_t i = 0; i < 2; ++i) job.chains.emplace_back().id = {id, i};
  return job;
}

TEST(JobTable, NameResolvesToItsNewestJobUnlessThatWasDeleted) {
  JobTable table;
  table.Add(Job(1, "a-111111", "a"));
  table.Add(Job(2, "a-222222", "a"));
  table.Add(Job(3, "a-333333", "a", JobIntent::kDelete));
  table.Add(Job(4, "b-444444", "b"));
  EXPECT_TRUE(absl::IsNotFound(table.Resolve(kDefaultTenant, "a").status()));
  table.Remove("a-333333");
  EXPECT_EQ(ReasonOf(table.Resolve(kDefaultTenant, "a").status()), "JOB_NOT_FOUND");
  table.Add(Job(5, "a-555555", "a"));
  EXPECT_EQ((*table.Resolve(kDefaultTenant, "a"))->row.id, "a-555555");
  EXPECT_EQ((*table.Resolve(kDefaultTenant, "a-111111"))->row.id, "a-111111");
  EXPECT_EQ((*table.Resolve(kDefaultTenant, "@latest"))->row.id, "a-555555");
  EXPECT_EQ(ReasonOf(table.Resolve(kDefaultTenant, "c").status()), "JOB_NOT_FOUND");
}

TEST(JobTable, ANameAndARequestIdBelongToATenant) {
  JobTable table;
  const auto add = [&](int64_t sequence, const std::string& id, const std::string& tenant, const std::string& request) {
    StoredJob job = Job(sequence, id, "a");
    job.row.tenant = tenant;
    job.row.request_id = request;
    return table.Add(std::move(job));
  };
  const JobEntry* vision = add(1, "a-111111", "vision", "r1");
  const JobEntry* speech = add(2, "a-222222", "speech", "r2");
  add(3, "a-333333", "speech", "");
  EXPECT_EQ(*table.Resolve("vision", "a"), vision);
  EXPECT_EQ(*table.Resolve("vision", "@latest"), vision);
  EXPECT_EQ((*table.Resolve("speech", "a"))->row.id, "a-333333");
  EXPECT_EQ(ReasonOf(table.Resolve("vision", "a-222222").status()), "JOB_NOT_FOUND");
  EXPECT_EQ(ReasonOf(table.Resolve("sound", "@latest").status()), "JOB_NOT_FOUND");
  EXPECT_TRUE(table.HasJobOfRequest("vision", "r1"));
  EXPECT_FALSE(table.HasJobOfRequest("vision", "r2"));
  JobRow deleted = speech->row;
  deleted.intent = JobIntent::kDelete;
  table.Update(deleted);
  EXPECT_FALSE(table.HasJobOfRequest("speech", "r2"));
  table.Remove("a-111111");
  EXPECT_FALSE(table.HasJobOfRequest("vision", "r1"));
  EXPECT_EQ(ReasonOf(table.Resolve("vision", "a").status()), "JOB_NOT_FOUND");
  EXPECT_EQ(ReasonOf(table.Resolve("vision", "@latest").status()), "JOB_NOT_FOUND");
}

TEST(JobTable, LatestIsTheNewestJobThatIsNotToBeDeleted) {
  JobTable table;
  table.Add(Job(1, "a-111111", "a"));
  table.Add(Job(2, "b-222222", "b"));
  const JobEntry* newest = table.Add(Job(3, "c-333333", "c"));
  JobRow deleted = newest->row;
  deleted.intent = JobIntent::kDelete;
  table.Update(deleted);
  EXPECT_EQ((*table.Resolve(kDefaultTenant, "@latest"))->row.id, "b-222222");
  table.Remove("b-222222");
  EXPECT_EQ((*table.Resolve(kDefaultTenant, "@latest"))->row.id, "a-111111");
}

TEST(JobTable, AChainMovesBetweenTheQueuesAlone) {
  JobTable table;
  JobEntry* job = table.Add(Job(1, "a-111111", "a"));
  ChainRow row = job->chains[0].row;
  row.crashes = limits::kCrashesUntilAlone;
  table.Update(row);
  EXPECT_THAT(job->suspects, testing::ElementsAre(0));
  EXPECT_THAT(job->pending, testing::ElementsAre(1));
  EXPECT_THAT(table.suspect_queue(), testing::SizeIs(1));
  row.state = ChainState::kLeased;
  table.Update(row);
  EXPECT_TRUE(job->suspects.empty() && table.suspect_queue().empty());
  EXPECT_THAT(table.running(), testing::SizeIs(1));
  row.state = ChainState::kSucceeded;
  row.step = 10;
  table.Update(row);
  EXPECT_TRUE(table.running().empty());
  EXPECT_EQ(job->state, JobState::kRunning) << "a chain waits";
  EXPECT_EQ(job->num_steps, 10);
  ChainRow last = job->chains[1].row;
  last.state = ChainState::kFailed;
  table.Update(last);
  EXPECT_TRUE(table.queue().empty());
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->num_in_state,
              testing::ElementsAre(testing::Pair(ChainState::kSucceeded, 1), testing::Pair(ChainState::kFailed, 1)));
}

TEST(JobTable, ASuccessMayMakeTheWaitingChainsSurplus) {
  JobTable table;
  StoredJob stored = Job(1, "a-111111", "a");
  JobPlan plan = *stored.row.plan;
  plan.spec.scheduling.success_chains = 1;
  stored.row.plan = std::make_shared<const JobPlan>(plan);
  JobEntry* job = table.Add(std::move(stored));
  ChainRow row = job->chains[0].row;
  row.state = ChainState::kLeased;
  table.Update(row);
  EXPECT_THAT(job->pending, testing::ElementsAre(1));
  row.state = ChainState::kSucceeded;
  table.Update(row);
  EXPECT_TRUE(job->pending.empty() && table.queue().empty());
  EXPECT_THAT(job->surplus, testing::ElementsAre(1));
  EXPECT_THAT(table.surplus_queue(), testing::SizeIs(1));
}

TEST(JobTable, QueueHoldsPendingChainsOfRunningJobsOnly) {
  JobTable table;
  JobEntry* job = table.Add(Job(1, "a-111111", "a"));
  EXPECT_THAT(job->pending, testing::ElementsAre(0, 1));
  ChainRow row = job->chains[0].row;
  row.state = ChainState::kLeased;
  table.Update(row);
  EXPECT_THAT(job->pending, testing::ElementsAre(1));
  EXPECT_EQ(job->state, JobState::kRunning);
  JobRow paused = job->row;
  paused.intent = JobIntent::kPause;
  table.Update(paused);
  EXPECT_TRUE(table.queue().empty());
  table.Remove("a-111111");
  EXPECT_TRUE(table.by_age().empty());
}

TEST(JobTable, ReportedStepFallsBackToTheCommittedOneWhenTheLeaseEnds) {
  JobTable table;
  JobEntry* job = table.Add(Job(1, "a-111111", "a"));
  ChainRow row = job->chains[0].row;
  row.state = ChainState::kLeased;
  table.Update(row);
  job->chains[0].reported_step = 70;
  row.step = 50;
  table.Update(row);
  EXPECT_EQ(ViewOf(*job, {}).chains[0].step, 70);
  row.state = ChainState::kPending;
  table.Update(row);
  EXPECT_EQ(ViewOf(*job, {}).chains[0].step, 50);
}

class TenantSums : public testing::Test {
 protected:
  // Returns jobs, chains, kept chains and bytes of draws.
  std::vector<int64_t> SumsOf(const std::string& tenant) const {
    const TenantJobs sums = table_.OfTenant(tenant);
    return {sums.jobs, sums.chains, sums.kept_chains, static_cast<int64_t>(sums.draw_bytes)};
  }
  JobEntry* Add(int64_t sequence, const std::string& id, const std::string& tenant, int64_t draw_bytes) {
    StoredJob stored = Job(sequence, id, id.substr(0, 1));
    stored.row.tenant = tenant;
    JobEntry* job = table_.Add(std::move(stored));
    job->draw_bytes = draw_bytes;  // no draws are counted yet
    return job;
  }

  JobTable table_;
};

TEST_F(TenantSums, FollowEveryChangeOfAJob) {
  JobEntry* job = Add(1, "a-111111", "vision", 8);
  Add(2, "b-222222", "speech", 8);
  EXPECT_THAT(SumsOf("vision"), testing::ElementsAre(1, 2, 2, 0));
  ChainRow chain = job->chains[1].row;
  chain.num_draws = 10;
  table_.Update(chain);
  EXPECT_THAT(SumsOf("vision"), testing::ElementsAre(1, 2, 2, 80));
  JobRow row = job->row;
  auto plan = std::make_shared<JobPlan>(*row.plan);
  plan->spec.chains = 3;
  row.plan = plan;
  table_.Update(row);
  chain.id.index = 2;
  chain.num_draws = 5;
  table_.Update(chain);
  EXPECT_THAT(SumsOf("vision"), testing::ElementsAre(1, 3, 3, 120));
  for (const int32_t unknown : {-1, 4}) {
    chain.id.index = unknown;
    table_.Update(chain);
  }
  row.finished_at = absl::UnixEpoch();
  table_.Update(row);
  EXPECT_THAT(SumsOf("vision"), testing::ElementsAre(1, 0, 3, 120));
  row.intent = JobIntent::kDelete;
  table_.Update(row);
  chain.id.index = 0;
  table_.Update(chain);
  EXPECT_THAT(SumsOf("vision"), testing::ElementsAre(0, 0, 0, 0)) << "its last commits do not count";
  table_.Remove("a-111111");
  EXPECT_THAT(SumsOf("vision"), testing::ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(SumsOf("speech"), testing::ElementsAre(1, 2, 2, 0));
}

TEST_F(TenantSums, ShrinkAgainAfterJobsOfHugeDraws) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const JobEntry* job :
       {Add(1, "a-111111", "vision", kHuge), Add(2, "b-222222", "vision", kHuge), Add(3, "c-333333", "vision", 8)}) {
    ChainRow chain = job->chains[0].row;
    chain.num_draws = 2;
    table_.Update(chain);
  }
  EXPECT_TRUE(table_.OfTenant("vision").draw_bytes > kHuge);
  table_.Remove("a-111111");
  table_.Remove("b-222222");
  EXPECT_THAT(SumsOf("vision"), testing::ElementsAre(1, 2, 2, 16));
}

constexpr absl::Duration kTerm = absl::Seconds(15);

SynchronizeRequest From(const std::string& incarnation, uint64_t seq) {
  SynchronizeRequest request;
  request.worker = "w";
  request.incarnation = incarnation;
  request.seq = seq;
  request.devices = {{"cpu", 0, 2}, {"cuda:0", 0, 16}};
  return request;
}

TEST(Fleet, RefusesALowerSeqButNotARepeat) {
  Fleet fleet;
  EXPECT_TRUE(fleet.See(From("one", 5), absl::ZeroDuration(), kTerm).ok());
  EXPECT_TRUE(fleet.See(From("one", 5), absl::ZeroDuration(), kTerm).ok());
  EXPECT_EQ(ReasonOf(fleet.See(From("one", 4), absl::ZeroDuration(), kTerm).status()), "STALE_SEQ");
}

TEST(Fleet, RefusesAFormerIncarnationWhileThePresentOneSpeaks) {
  Fleet fleet;
  EXPECT_TRUE(fleet.See(From("one", 5), absl::ZeroDuration(), kTerm).ok());
  EXPECT_TRUE(fleet.See(From("two", 1), absl::ZeroDuration(), kTerm).ok());
  EXPECT_EQ(ReasonOf(fleet.See(From("one", 6), kTerm - absl::Seconds(1), kTerm).status()), "STALE_SEQ");
  EXPECT_EQ(fleet.Find("w")->incarnation, "two");
}

// A server that was started anew heard "two" and then a belated call of "one", which is dead: "two" is not lost for it.
TEST(Fleet, HearsAFormerIncarnationOnceThePresentOneIsSilent) {
  Fleet fleet;
  EXPECT_TRUE(fleet.See(From("two", 1), absl::ZeroDuration(), kTerm).ok());
  EXPECT_TRUE(fleet.See(From("one", 7), absl::Seconds(1), kTerm).ok());
  EXPECT_EQ(ReasonOf(fleet.See(From("two", 2), absl::Seconds(5), kTerm).status()), "STALE_SEQ");
  EXPECT_TRUE(fleet.See(From("two", 3), absl::Seconds(1) + kTerm, kTerm).ok());
  EXPECT_TRUE(fleet.See(From("two", 4), absl::Seconds(2) + kTerm, kTerm).ok());
  EXPECT_EQ(ReasonOf(fleet.See(From("one", 8), absl::Seconds(3) + kTerm, kTerm).status()), "STALE_SEQ");
}

// The owner of another token cannot take a worker's id while the worker is there.
TEST(Fleet, RefusesAnotherIncarnationThatAnotherTokenLetInWhileThePresentOneSpeaks) {
  Fleet fleet;
  const auto see = [&](const std::string& incarnation, uint64_t seq, const std::string& token, absl::Duration now) {
    SynchronizeRequest request = From(incarnation, seq);
    request.admission = {token, "vision"};
    return ReasonOf(fleet.See(request, now, kTerm).status());
  };
  EXPECT_EQ(see("one", 5, "own", absl::ZeroDuration()), "");
  EXPECT_EQ(see("thief", 1, "other", kTerm - absl::Seconds(1)), "WORKER_PRESENT");
  EXPECT_EQ(fleet.Find("w")->incarnation, "one");
  EXPECT_EQ(see("two", 1, "own", absl::Seconds(1)), "") << "restarted by its owner";
  EXPECT_EQ(see("other", 1, "other", absl::Seconds(1) + kTerm), "") << "the id is free after a term of silence";
}

// An admin of a tenant sees the ids of the fleet's workers, and may make tokens for workers.
TEST(Fleet, AWorkerForAllTenantsTakesItsIdBackFromOneOfATenant) {
  Fleet fleet;
  const auto see = [&](const std::string& incarnation, uint64_t seq, const Admission& admission, absl::Duration now) {
    SynchronizeRequest request = From(incarnation, seq);
    request.admission = admission;
    return ReasonOf(fleet.See(request, now, kTerm).status());
  };
  const Admission all = {"fleet's", "*"}, one = {"vision's", "vision"};
  EXPECT_EQ(see("own", 1, all, absl::ZeroDuration()), "");
  EXPECT_EQ(see("squatter", 1, one, kTerm), "") << "the worker was silent";
  EXPECT_EQ(see("own", 2, all, kTerm), "") << "the same process";
  EXPECT_EQ(see("squatter", 2, one, kTerm + absl::Seconds(1)), "WORKER_PRESENT");
  EXPECT_EQ(see("squatter", 3, one, 2 * kTerm), "");
  EXPECT_EQ(see("restarted", 1, all, 2 * kTerm), "");
  EXPECT_EQ(see("other", 1, {"other's", "*"}, 2 * kTerm), "WORKER_PRESENT") << "neither outranks the other";
}

TEST(Fleet, RefusesNewWorkersOfATenantThatHasTooManyAndKeepsTheKnownOnes) {
  Fleet fleet;
  const auto see = [&](const std::string& id, const std::string& tenant) {
    SynchronizeRequest request = From("one", 1);
    request.worker = id;
    request.admission = {"token", tenant};
    return fleet.See(request, absl::ZeroDuration(), kTerm).status();
  };
  const std::string names = "w";
  for (int64_t i = 0; i < kMaxTenantWorkers; ++i) ASSERT_TRUE(see(names + std::to_string(i), "vision").ok()) << i;
  const absl::Status refused = see("new", "vision");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_EQ(BoundOf(refused), "tenant_workers");
  EXPECT_EQ(fleet.Find("new"), nullptr);
  EXPECT_TRUE(see("w0", "vision").ok()) << "a known worker goes on";
  EXPECT_TRUE(see("new", "speech").ok());
  EXPECT_TRUE(see("fleet's", "*").ok());
  fleet.ForgetSilent(absl::Seconds(1), [](const std::string& id) { return id == "w0"; });
  EXPECT_TRUE(see("newer", "vision").ok());
}

TEST(Fleet, SettlesAMomentAfterTheFirstNewProcessOfAWave) {
  Fleet fleet;
  const auto settles = [&](const std::string& incarnation, int64_t ms) {
    EXPECT_TRUE(fleet.See(From(incarnation, 1), absl::Milliseconds(ms), kTerm).ok());
    return absl::ToInt64Milliseconds(fleet.settles());
  };
  EXPECT_EQ(settles("one", 5000), 5500);
  EXPECT_EQ(settles("two", 5400), 5500);
  EXPECT_EQ(settles("two", 7000), 5500) << "it is known";
  EXPECT_EQ(settles("three", 7000), 7500);
}

TEST(Fleet, AddsUpDevicesAndForgetsTheSilent) {
  Fleet fleet;
  const WorkerEntry* worker = fleet.See(From("one", 1), absl::Seconds(10), kTerm).value();
  EXPECT_EQ(worker->chain_slots, 18);
  EXPECT_EQ(worker->device, "cpu,cuda:0");
  bool waits = true;
  const auto forget = [&](int64_t before) { fleet.ForgetSilent(absl::Seconds(before), [&](auto&) { return waits; }); };
  forget(11);
  EXPECT_NE(fleet.Find("w"), nullptr) << "its call is held";
  waits = false;
  forget(10);
  EXPECT_NE(fleet.Find("w"), nullptr);
  forget(11);
  EXPECT_EQ(fleet.Find("w"), nullptr);
}

}  // namespace
}  // namespace chainfleet
