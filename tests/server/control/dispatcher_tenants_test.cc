// Tests tenants: the owner of each job, the order of their grants, and the limits on calls in flight.
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/recording_store.h"

namespace chainfleet {
namespace {

class DispatcherTenants : public DispatcherTest {
 protected:
  std::string CreateFor(const std::string& tenant, const std::string& name, int chains,
                        Priority priority = Priority::kNormal) {
    JobSpec spec = SmallSpec(name, chains);
    spec.scheduling.priority = priority;
    return Wait<JobView>([&](auto done) { dispatcher_->CreateJob(tenant, spec, "", false, done); }).value().id;
  }
  // Returns chains by job.
  static std::map<std::string, int> Held(const FakeWorker& worker) {
    std::map<std::string, int> held;
    for (const auto& [chain, lease] : worker.chains) ++held[chain.job];
    return held;
  }
  // Makes two rounds, so that grants are listed.
  void Fill(FakeWorker* worker) {
    Sync(worker);
    Sync(worker);
  }
  void Finish(FakeWorker* worker, const ChainId& chain) {
    Advance(worker, chain, ChainState::kSucceeded);
    executor_.RunFor(limits::kPolicyInterval);
    Fill(worker);
  }
};

TEST_F(DispatcherTenants, AJobIsFoundByItsTenantAlone) {
  const std::string mine = CreateFor("a", "job", 1), theirs = CreateFor("b", "job", 1);
  EXPECT_EQ(dispatcher_->ResolveJob("a", "job").value(), mine);
  EXPECT_EQ(dispatcher_->ResolveJob("b", "job").value(), theirs);
  EXPECT_EQ(dispatcher_->ResolveJob("a", "@latest").value(), mine);
  EXPECT_TRUE(absl::IsNotFound(dispatcher_->ResolveJob("a", theirs).status()));
  EXPECT_TRUE(absl::IsNotFound(dispatcher_->ResolveJob("c", "@latest").status()));
  EXPECT_EQ(dispatcher_->ListJobs({.tenant = "a"}, 0, "")->items.size(), 1u);
  EXPECT_EQ(dispatcher_->ListJobs({}, 0, "")->items.size(), 2u);
  EXPECT_EQ(dispatcher_->GetJob(mine)->tenant, "a");
  Start();
  EXPECT_EQ(dispatcher_->ResolveJob("a", "job").value(), mine) << "after a restart, too";
}

TEST_F(DispatcherTenants, ARequestIdIsATenantsOwn) {
  const auto create = [&](const std::string& tenant, int chains) {
    return Wait<JobView>(
        [&](auto done) { dispatcher_->CreateJob(tenant, SmallSpec("job", chains), "r1", false, done); });
  };
  const std::string mine = create("a", 1)->id;
  EXPECT_NE(create("b", 2)->id, mine);
  EXPECT_EQ(create("a", 1)->id, mine);
}

TEST_F(DispatcherTenants, AnOlderJobOfATenantThatHasTheFleetWaits) {
  FakeWorker worker("w1", 4);
  const std::string first = CreateFor("a", "first", 4);
  Fill(&worker);
  const std::string older = CreateFor("a", "older", 1), younger = CreateFor("b", "younger", 1);
  Finish(&worker, {first, 0});
  EXPECT_EQ(Held(worker), (std::map<std::string, int>{{first, 3}, {younger, 1}}));
  Finish(&worker, {first, 1});
  EXPECT_EQ(Held(worker)[older], 1) << "nobody else waits";
}

TEST_F(DispatcherTenants, WithinATenantTheOlderJobGoesFirst) {
  FakeWorker worker("w1", 1);
  const std::string first = CreateFor("a", "first", 1), second = CreateFor("a", "second", 1);
  Fill(&worker);
  EXPECT_EQ(Held(worker), (std::map<std::string, int>{{first, 1}}));
  Finish(&worker, {first, 0});
  EXPECT_EQ(Held(worker), (std::map<std::string, int>{{second, 1}}));
}

TEST_F(DispatcherTenants, TiersComeBeforeShares) {
  FakeWorker worker("w1", 2);
  const std::string held = CreateFor("a", "held", 2);
  Fill(&worker);
  CreateFor("b", "normal", 5);
  const std::string high = CreateFor("a", "high", 1, Priority::kHigh);
  Finish(&worker, {held, 0});
  EXPECT_EQ(Held(worker)[high], 1);
}

TEST_F(DispatcherTenants, AnEmptyFleetIsSharedByTheWeights) {
  DispatcherOptions options;
  options.id_key = RngKey{42};
  options.shares.weights.own["three"] = 3;
  coordinator_.reset();
  store_ = database_.Open();
  Begin(store_.get(), options);
  const std::string one = CreateFor("one", "job", 40), three = CreateFor("three", "job", 40);
  FakeWorker worker("w1", 16);
  Fill(&worker);
  EXPECT_EQ(Held(worker), (std::map<std::string, int>{{one, 4}, {three, 12}}));
  for (int round = 0; round < 6; ++round) {
    const auto held = worker.chains;
    for (const auto& [chain, lease] : held) Advance(&worker, chain, ChainState::kSucceeded);
    executor_.RunFor(limits::kPolicyInterval);
    Fill(&worker);
    if (round == 0) {
      EXPECT_EQ(Held(worker), (std::map<std::string, int>{{one, 4}, {three, 12}}));
    }
  }
  EXPECT_EQ(worker.chains.size(), 0u) << "in the end all have run";
}

TEST_F(DispatcherTenants, ATenantWhoseChainsFitNowhereDelaysNoOther) {
  JobSpec big = SmallSpec("big", 2);
  big.model.kind = GaussianPotential{50'000'000, 1.0};
  FakeWorker worker("w1", 4);
  const std::string held = CreateFor("b", "held", 1);
  Fill(&worker);
  worker.memory_bytes = 1 << 20;
  Sync(&worker);
  ASSERT_TRUE(Wait<JobView>([&](auto done) { dispatcher_->CreateJob("a", big, "", false, done); }).ok());
  const std::string small = CreateFor("b", "small", 3);
  Fill(&worker);
  EXPECT_EQ(Held(worker), (std::map<std::string, int>{{held, 1}, {small, 3}}));
}

// A lease is charged once, for every kind of end.
TEST_F(DispatcherTenants, LeasesThatEndAreChargedNoMore) {
  FakeWorker lost("w1", 1), worker("w2", 1);
  const std::string a = CreateFor("a", "job", 1);
  Sync(&lost);
  ASSERT_EQ(lost.chains.size(), 1u);
  executor_.RunFor(kTermAndGrace + limits::kMaxAttemptDelay);  // lost is gone with it
  Fill(&worker);
  ASSERT_EQ(Held(worker), (std::map<std::string, int>{{a, 1}}));
  const std::string b = CreateFor("b", "job", 1), more = CreateFor("a", "more", 1);
  Finish(&worker, {a, 0});
  EXPECT_EQ(Held(worker), (std::map<std::string, int>{{b, 1}}));
  Finish(&worker, {b, 0});
  EXPECT_EQ(Held(worker), (std::map<std::string, int>{{more, 1}}));
}

class LimitedTenant : public DispatcherTest {
 protected:
  LimitedTenant() {
    coordinator_.reset();
    DispatcherOptions options;
    options.id_key = RngKey{42};
    options.tenant_limits = {.jobs = 2, .chains = 4, .stored_bytes = 100};
    Begin(&disk_, options);
  }
  // These return at once: their changes are written when the executor runs.
  Answer<JobView> StartCreate(const std::string& name, int chains, const std::string& request_id = "") {
    Answer<JobView> answer;
    dispatcher_->CreateJob(kDefaultTenant, SmallSpec(name, chains), request_id, false, answer.reply());
    return answer;
  }
  Answer<JobView> StartScale(const std::string& job, int32_t chains) {
    Answer<JobView> answer;
    dispatcher_->ScaleJob(job, chains, answer.reply());
    return answer;
  }
  absl::StatusOr<std::shared_ptr<TenantReservation>> Reserve(const std::string& content, int64_t bytes) {
    return dispatcher_->ReserveRoom(kDefaultTenant, content, bytes, 1);
  }
  static std::string BoundOn(const Answer<JobView>& answer) { return BoundOf(answer.get().status()); }

  RecordingStore disk_{database_.Open()};
};

TEST_F(LimitedTenant, JobsInFlightTakeTheRoomOfLaterOnes) {
  Create("first", 1);
  const auto second = StartCreate("second", 1), third = StartCreate("third", 1);
  executor_.RunUntilIdle();
  EXPECT_TRUE(second.get().ok()) << second.get().status();
  EXPECT_EQ(BoundOn(third), "tenant_jobs");
}

TEST_F(LimitedTenant, ChainsOfJobsInFlightTakeTheRoomOfLaterOnes) {
  const auto first = StartCreate("first", 3), second = StartCreate("second", 2), third = StartCreate("third", 1);
  executor_.RunUntilIdle();
  EXPECT_TRUE(first.get().ok()) << first.get().status();
  EXPECT_EQ(BoundOn(second), "tenant_chains");
  EXPECT_TRUE(third.get().ok()) << third.get().status();
}

TEST_F(LimitedTenant, AJobThatIsNotStoredLeavesItsRoom) {
  disk_.SetFull(true);
  EXPECT_EQ(ReasonOf(TryCreate(SmallSpec("first", 4)).status()), "DISK_FULL");
  disk_.SetFull(false);
  EXPECT_TRUE(TryCreate(SmallSpec("first", 4)).ok());
}

TEST_F(LimitedTenant, ARequestThatIsRepeatedInFlightCountsOnce) {
  const auto first = StartCreate("job", 4, "r1"), again = StartCreate("job", 4, "r1");
  executor_.RunUntilIdle();
  ASSERT_TRUE(again.get().ok()) << again.get().status();
  EXPECT_EQ(again.get()->id, first.get()->id);
}

TEST_F(LimitedTenant, AddedChainsInFlightTakeTheRoomOfLaterOnes) {
  const std::string one = Create("one", 1), two = Create("two", 1);
  const auto first = StartScale(one, 3), again = StartScale(one, 3), second = StartScale(two, 2);
  executor_.RunUntilIdle();
  EXPECT_TRUE(first.get().ok()) << first.get().status();
  EXPECT_TRUE(again.get().ok()) << again.get().status();
  EXPECT_EQ(BoundOn(second), "tenant_chains");
}

TEST_F(LimitedTenant, ChainsThatAreNotAddedLeaveTheirRoom) {
  const std::string one = Create("one", 1), two = Create("two", 1);
  disk_.SetFull(true);
  const auto failed = StartScale(one, 3);
  executor_.RunUntilIdle();
  EXPECT_EQ(ReasonOf(failed.get().status()), "DISK_FULL");
  disk_.SetFull(false);
  const auto scaled = StartScale(two, 3);
  executor_.RunUntilIdle();
  EXPECT_TRUE(scaled.get().ok()) << scaled.get().status();
}

TEST_F(LimitedTenant, AnUploadCountsOnceWhenItIsStored) {
  const auto room = Reserve("model a", 60);
  ASSERT_TRUE(room.ok()) << room.status();
  EXPECT_EQ(BoundOf(Reserve("model b", 60).status()), "tenant_stored_gib");
  const StoredModel model{.name = "a", .object = {"a", 60, DigestOf(1)}, .signature = NetworkSignature()};
  const auto upload = Wait<std::string>([&](auto done) { catalog_->BeginUpload({model.object.name}, done); });
  ASSERT_TRUE(Wait<StoredModel>([&](auto done) { catalog_->Put(model, *upload, done, *room); }).ok());
  EXPECT_TRUE(Reserve("model c", 40).ok());
  EXPECT_FALSE(Reserve("model c", 41).ok());
}

}  // namespace
}  // namespace chainfleet
