// Tests Decide, a pure function: each test puts a few rows into the tables and reads the plan.
#include "server/control/scheduling_plan.h"

#include <functional>

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Duration kNow = absl::Minutes(10);
constexpr int64_t kGiB = 1024 * limits::kMiB;

struct JobSketch {
  int32_t chains = 1;
  Priority priority = Priority::kNormal;
  std::string tenant = "a";
  int64_t bytes = 0;  // measured bytes of one chain
  std::optional<int64_t> success_chains = std::nullopt;
};

class SchedulingPlanTest : public testing::Test {
 protected:
  WorkerEntry* AddWorker(const std::string& id, int32_t slots, int64_t memory_bytes = 0,
                         const Admission& admission = {}) {
    SynchronizeRequest request;
    request.admission = admission;
    request.worker = id;
    request.incarnation = id + "-1";
    request.host = "host-of-" + id;
    request.devices = {{"cpu", memory_bytes, slots}};
    return tables_.fleet.See(request, kNow - kFleetSettles, limits::kLeaseTtl).value();
  }

  JobEntry* AddJob(const std::string& id, const JobSketch& sketch = {}) {
    JobPlan plan;
    plan.job = id;
    plan.spec.num_steps = 10;
    plan.spec.chains = sketch.chains;
    plan.spec.model.kind = GaussianPotential{};
    plan.spec.schedule.kind = ConstantSchedule{0.1};
    plan.spec.scheduling = {sketch.priority, sketch.success_chains};
    StoredJob job;
    job.row.sequence = static_cast<int64_t>(tables_.jobs.by_age().size());
    job.row.id = id;
    job.row.tenant = sketch.tenant;
    job.row.plan = std::make_shared<const JobPlan>(plan);
    for (int32_t i = 0; i < sketch.chains; ++i) job.chains.emplace_back().id = {id, i};
    JobEntry* entry = tables_.jobs.Add(std::move(job));
    entry->measured_bytes = sketch.bytes;
    return entry;
  }

  void Change(const ChainId& chain, const std::function<void(ChainRow*)>& change) {
    ChainRow row = tables_.jobs.Find(chain)->row;
    change(&row);
    tables_.jobs.Update(row);
  }
  void Suspect(const ChainId& chain) {
    Change(chain, [](ChainRow* row) { row->crashes = limits::kCrashesUntilAlone; });
    Change(chain, [](ChainRow* row) { row->state = ChainState::kLeased; });
    Change(chain, [](ChainRow* row) { row->state = ChainState::kPending; });
  }
  // The worker holds the chain.
  Lease* Run(const ChainId& chain, const std::string& worker) {
    Change(chain, [](ChainRow* row) { row->state = ChainState::kLeased; });
    const int64_t bytes = tables_.jobs.Find(chain.job)->chain_bytes();
    return tables_.leases.Put({.chain = chain, .worker = worker, .bytes = bytes, .state = LeaseState::kHeld});
  }

  SchedulingPlan Plan() const { return Decide(tables_, kNow, limits::kLeaseTtl); }
  // "chain worker", in order.
  std::vector<std::string> Grants() const {
    std::vector<std::string> grants;
    for (const Assignment& grant : Plan().grants) grants.push_back(ToString(grant.chain) + " " + grant.worker);
    return grants;
  }

  SchedulingTables tables_{{}, {}, {}, FairShare({.weights = {1, {{"heavy", 3}}}}), {}};
};

TEST_F(SchedulingPlanTest, AnIdleFleetGetsAnEmptyPlan) {
  AddWorker("w1", 4);
  AddJob("done");
  Change({"done", 0}, [](ChainRow* row) { row->state = ChainState::kSucceeded; });
  const SchedulingPlan plan = Plan();
  EXPECT_TRUE(plan.grants.empty() && plan.yields.empty() && plan.retirements.empty() && plan.cleared.empty());
  EXPECT_FALSE(plan.again || plan.next_attempt);
}

TEST_F(SchedulingPlanTest, OnlyAWorkerThatMayWorkGetsAChain) {
  const struct {
    const char* name;
    std::function<void(WorkerEntry*)> change;
    size_t grants;
  } cases[] = {
      {"free", [](WorkerEntry*) {}, 1},
      {"heard of a term ago", [](WorkerEntry* w) { w->last_sync = kNow - limits::kLeaseTtl; }, 1},
      {"silent", [](WorkerEntry* w) { w->last_sync = kNow - limits::kLeaseTtl - absl::Nanoseconds(1); }, 0},
      {"draining", [](WorkerEntry* w) { w->draining = true; }, 0},
      {"without a slot", [](WorkerEntry* w) { w->chain_slots = 0; }, 0},
  };
  AddJob("job");
  for (const auto& c : cases) {
    c.change(AddWorker("w1", 1));
    EXPECT_THAT(Grants(), SizeIs(c.grants)) << c.name;
  }
}

TEST_F(SchedulingPlanTest, AWorkerOfATenantGetsOnlyItsChains) {
  AddWorker("own", 4, 0, {"token", "heavy"});
  AddJob("light", {.tenant = "light"});
  EXPECT_THAT(Grants(), IsEmpty());
  AddJob("heavy", {.tenant = "heavy"});
  EXPECT_THAT(Grants(), ElementsAre("heavy/0 own"));
  Suspect({"light", 0});
  Suspect({"heavy", 0});
  EXPECT_THAT(Plan().cleared, ElementsAre("own"));
  EXPECT_TRUE(Plan().turns.HasTurn({"heavy", 0}));
}

TEST_F(SchedulingPlanTest, OnlyAChainThatMayStartIsGranted) {
  AddWorker("w1", 8);
  JobEntry* job = AddJob("job", {.chains = 4});
  job->chains[0].in_flight = true;
  job->chains[1].not_before = kNow + absl::Seconds(3);
  job->chains[2].not_before = kNow + absl::Seconds(2);
  EXPECT_THAT(Grants(), ElementsAre("job/3 w1"));
  EXPECT_EQ(Plan().next_attempt, kNow + absl::Seconds(2));
}

TEST_F(SchedulingPlanTest, ChainsWaitForTheRestOfAWaveOfWorkers) {
  AddWorker("w1", 1)->last_sync = kNow;
  AddJob("job");
  const SchedulingPlan early = Decide(tables_, kNow - absl::Milliseconds(1), limits::kLeaseTtl);
  EXPECT_THAT(early.grants, IsEmpty());
  EXPECT_EQ(early.again, kNow);
  EXPECT_THAT(Grants(), ElementsAre("job/0 w1"));
}

TEST_F(SchedulingPlanTest, AWorkerWithMoreChainsThanSlotsTakesNoSlotFromTheOthers) {
  AddWorker("w1", 1);
  AddWorker("w2", 1);
  AddJob("running", {.chains = 2});
  for (int32_t i = 0; i < 2; ++i) Run({"running", i}, "w1");
  AddJob("job");
  EXPECT_THAT(Grants(), ElementsAre("job/0 w2"));
}

TEST_F(SchedulingPlanTest, OneDecisionGrantsABatchAndAsksForTheNext) {
  AddWorker("w1", 300);
  AddJob("job", {.chains = 257});
  EXPECT_THAT(Plan().grants, SizeIs(limits::kStateWriterBatch));
  EXPECT_EQ(Plan().again, kNow + limits::kPolicyInterval);
  Run({"job", 256}, "w1");
  Run({"job", 255}, "w1");
  EXPECT_THAT(Plan().grants, SizeIs(255));
  EXPECT_EQ(Plan().again, std::nullopt);
}

TEST_F(SchedulingPlanTest, AHigherTierGoesFirstThenTheOlderJob) {
  AddWorker("w1", 3);
  AddJob("old", {.chains = 1});
  AddJob("young", {.chains = 9});
  AddJob("high", {.chains = 1, .priority = Priority::kHigh});
  EXPECT_THAT(Grants(), ElementsAre("high/0 w1", "old/0 w1", "young/0 w1"));
}

TEST_F(SchedulingPlanTest, AJobSpreadsOverWorkersWithWhatItHolds) {
  AddWorker("w1", 4);
  AddWorker("w2", 4);
  AddJob("job", {.chains = 4});
  Run({"job", 0}, "w1");
  EXPECT_THAT(Grants(), ElementsAre("job/1 w2", "job/2 w1", "job/3 w2"));
}

TEST_F(SchedulingPlanTest, ChainsArePackedByTheirMemory) {
  AddWorker("w1", 8, 100 * kGiB);
  AddWorker("w2", 8, 30 * kGiB);
  AddJob("big", {.chains = 4, .bytes = 40 * kGiB});
  AddJob("small", {.chains = 3, .bytes = 10 * kGiB});
  EXPECT_THAT(Grants(), ElementsAre("big/0 w1", "big/1 w2", "big/2 w1", "small/0 w1", "small/1 w1"))
      << "an empty worker tries one chain that is too big";
}

TEST_F(SchedulingPlanTest, AChainShunsTheWorkerThatGaveItBackUnlessThereIsNoOther) {
  AddJob("job")->chains[0].avoided_worker = "w1";
  AddWorker("w1", 4);
  EXPECT_THAT(Grants(), ElementsAre("job/0 w1"));
  AddWorker("w2", 1);
  EXPECT_THAT(Grants(), ElementsAre("job/0 w2"));
}

TEST_F(SchedulingPlanTest, TenantsShareTheSlotsByTheirWeights) {
  AddWorker("w1", 4);
  AddJob("light", {.chains = 9, .tenant = "light"});
  AddJob("heavy", {.chains = 9, .tenant = "heavy"});
  EXPECT_THAT(Grants(), ElementsAre("heavy/0 w1", "heavy/1 w1", "heavy/2 w1", "light/0 w1"));
}

TEST_F(SchedulingPlanTest, TheTenantThatHasUsedLessGoesFirst) {
  AddWorker("w1", 1);
  AddJob("old", {.tenant = "a"});
  AddJob("young", {.tenant = "b"});
  EXPECT_THAT(Grants(), ElementsAre("old/0 w1"));
  tables_.shares.Hold("a", 1, kNow - absl::Hours(1));
  EXPECT_THAT(Grants(), ElementsAre("young/0 w1"));
}

TEST_F(SchedulingPlanTest, GrantsOfAHigherTierAreChargedWithinTheDecision) {
  AddWorker("w1", 2);
  AddJob("high", {.priority = Priority::kHigh, .tenant = "a"});
  AddJob("old", {.tenant = "a"});
  AddJob("young", {.tenant = "b"});
  EXPECT_THAT(Grants(), ElementsAre("high/0 w1", "young/0 w1"));
}

TEST_F(SchedulingPlanTest, SlotsThatATenantCannotUseGoToTheNextTenant) {
  AddWorker("w1", 4, 100 * kGiB);
  AddWorker("w2", 2, 100 * kGiB);
  AddJob("running", {.chains = 2, .bytes = 10 * kGiB});
  Run({"running", 0}, "w1");
  Run({"running", 1}, "w2");
  AddJob("big", {.chains = 4, .tenant = "heavy", .bytes = 101 * kGiB});
  AddJob("small", {.chains = 4, .tenant = "light", .bytes = 10 * kGiB});
  EXPECT_THAT(Grants(), ElementsAre("small/0 w1", "small/1 w2", "small/2 w1", "small/3 w1"))
      << "its part is one slot; the rest is spread with the chain that got it";
}

TEST_F(SchedulingPlanTest, ChainsThatTheirJobNoLongerNeedsAreRetired) {
  JobEntry* enough = AddJob("enough", {.chains = 4, .success_chains = 1});
  Change({"enough", 0}, [](ChainRow* row) { row->state = ChainState::kSucceeded; });
  enough->chains[1].in_flight = true;
  Run({"enough", 2}, "w1");
  JobRow stopped = AddJob("stopped")->row;
  stopped.stopped[0] = "R-hat 1.001";
  tables_.jobs.Update(stopped);
  EXPECT_THAT(Plan().retirements,
              ElementsAre(SchedulingPlan::Retirement{{"enough", 3}, "as many chains succeeded as the job asks for"},
                          SchedulingPlan::Retirement{{"stopped", 0}, "R-hat 1.001"}));
}

// One worker that is full with two chains of a job of the normal tier.
class SchedulingPlanYields : public SchedulingPlanTest {
 protected:
  SchedulingPlanYields() {
    AddWorker("w1", 2);
    AddJob("running", {.chains = 2});
    first_ = Run({"running", 0}, "w1");
    second_ = Run({"running", 1}, "w1");
  }
  Lease *first_, *second_;
};

TEST_F(SchedulingPlanYields, AsManyChainsYieldAsWaitInAHigherTierTheLastFirst) {
  const struct {
    Priority priority;
    int32_t chains;
    std::vector<int32_t> yields;
  } cases[] = {
      {Priority::kHigh, 1, {1}},  {Priority::kHigh, 2, {0, 1}}, {Priority::kHigh, 9, {0, 1}},
      {Priority::kNormal, 2, {}}, {Priority::kLow, 2, {}},
  };
  for (const auto& c : cases) {
    AddJob("waiting", {.chains = c.chains, .priority = c.priority});
    std::set<ChainId> yields;
    for (const int32_t index : c.yields) yields.insert({"running", index});
    EXPECT_EQ(Plan().yields, yields) << c.chains << " of tier " << static_cast<int>(c.priority);
    tables_.jobs.Remove("waiting");
  }
}

TEST_F(SchedulingPlanYields, NoChainYieldsForAChainThatFindsAPlaceInTheSameDecision) {
  AddJob("waiting", {.chains = 2, .priority = Priority::kHigh});
  AddWorker("w2", 1);
  EXPECT_THAT(Grants(), ElementsAre("waiting/0 w2"));
  EXPECT_THAT(Plan().yields, ElementsAre(ChainId{"running", 1}));
}

TEST_F(SchedulingPlanTest, AChainThatIsGrantedInTheSameDecisionMayYield) {
  AddWorker("w1", 2, 100 * kGiB);
  AddJob("low", {.chains = 2, .priority = Priority::kLow, .bytes = 20 * kGiB});
  Run({"low", 0}, "w1");
  AddJob("high", {.priority = Priority::kHigh, .bytes = 90 * kGiB});
  EXPECT_THAT(Grants(), ElementsAre("low/1 w1"));
  EXPECT_THAT(Plan().yields, ElementsAre(ChainId{"low", 0}, ChainId{"low", 1}));
}

TEST_F(SchedulingPlanTest, NoMoreChainsYieldThanOneDecisionCanPlace) {
  AddWorker("w1", 300);
  AddJob("low", {.chains = 300, .priority = Priority::kLow});
  for (int32_t i = 0; i < 300; ++i) Run({"low", i}, "w1");
  AddJob("high", {.chains = 300, .priority = Priority::kHigh});
  EXPECT_THAT(Plan().yields, SizeIs(limits::kStateWriterBatch));
}

TEST_F(SchedulingPlanYields, YieldsStayWhileTheFleetSettles) {
  tables_.leases.SetPreempted({{"running", 0}});
  AddJob("waiting", {.priority = Priority::kHigh});
  EXPECT_THAT(Decide(tables_, kNow - absl::Milliseconds(1), limits::kLeaseTtl).yields,
              ElementsAre(ChainId{"running", 0}));
}

TEST_F(SchedulingPlanYields, AChainThatLeavesMakesRoomAsItIs) {
  AddJob("waiting", {.chains = 1, .priority = Priority::kHigh});
  second_->state = LeaseState::kStopping;
  EXPECT_THAT(Plan().yields, IsEmpty());
  second_->state = LeaseState::kHeld;
  tables_.leases.EndAt(first_, kNow, Ordered("drained"));
  EXPECT_THAT(Plan().yields, IsEmpty());
}

TEST_F(SchedulingPlanYields, AYieldLastsWhileItIsNeededOrOnceTheWorkerWasTold) {
  tables_.leases.SetPreempted({{"running", 0}, {"running", 1}});
  EXPECT_THAT(Plan().yields, IsEmpty()) << "nothing waits any more";
  first_->state = LeaseState::kStopping;
  EXPECT_THAT(Plan().yields, ElementsAre(ChainId{"running", 0}));
  tables_.leases.Remove({"running", 0});
  EXPECT_THAT(Plan().yields, IsEmpty());
}

TEST_F(SchedulingPlanYields, AFreeSlotBesideAChainThatYieldsIsKeptForHigherTiers) {
  tables_.leases.SetPreempted({{"running", 1}});
  tables_.leases.Remove({"running", 0});
  Change({"running", 0}, [](ChainRow* row) { row->state = ChainState::kSucceeded; });
  AddJob("low", {.priority = Priority::kLow});
  AddJob("normal");
  EXPECT_THAT(Grants(), IsEmpty());
  AddJob("high", {.priority = Priority::kHigh});
  EXPECT_THAT(Grants(), ElementsAre("high/0 w1"));
}

TEST_F(SchedulingPlanTest, ASuspectGetsTheEmptiestWorkerWhichIsClearedForIt) {
  AddWorker("w1", 4);
  AddWorker("w2", 4);
  AddJob("other", {.chains = 4});
  for (int32_t i = 0; i < 3; ++i) Run({"other", i}, i < 2 ? "w1" : "w2");
  AddJob("suspect");
  Suspect({"suspect", 0});
  const SchedulingPlan plan = Plan();
  EXPECT_THAT(plan.cleared, ElementsAre("w2"));
  EXPECT_TRUE(plan.turns.Keeps("w2") && !plan.turns.turns().at("w2").began);
  EXPECT_THAT(Grants(), ElementsAre("other/3 w1")) << "nothing else goes to the worker that is kept";
}

TEST_F(SchedulingPlanTest, ATurnBeginsOnAWorkerThatHoldsNothing) {
  WorkerEntry* worker = AddWorker("w1", 4);
  AddJob("suspect");
  AddJob("other");
  Suspect({"suspect", 0});
  EXPECT_THAT(Grants(), ElementsAre("suspect/0 w1"));
  EXPECT_TRUE(Plan().turns.turns().at("w1").began);
  worker->chains_listed = 1;
  EXPECT_THAT(Grants(), IsEmpty()) << "its process still has a chain";
}

TEST_F(SchedulingPlanTest, AChainGetsOneTurn) {
  AddWorker("w1", 4)->chains_listed = 1;
  AddJob("suspect");
  Suspect({"suspect", 0});
  tables_.turns.Plan("w1", {"suspect", 0});
  for (int i = 2; i <= 4; ++i) AddWorker("w" + std::to_string(i), 4);
  EXPECT_THAT(Plan().cleared, IsEmpty());
}

TEST_F(SchedulingPlanTest, SuspectsGetHalfOfTheFleet) {
  for (int i = 1; i <= 5; ++i) AddWorker("w" + std::to_string(i), 4);
  AddJob("suspect", {.chains = 4});
  for (int32_t i = 0; i < 4; ++i) Suspect({"suspect", i});
  EXPECT_THAT(Grants(), ElementsAre("suspect/0 w1", "suspect/1 w2"));
}

TEST_F(SchedulingPlanTest, ATurnLastsWhileItsChainIsASuspectThatWaitsOrRunsThere) {
  const struct {
    const char* name;
    std::function<void()> change;
    bool lasts;
  } cases[] = {
      {"waits", [] {}, true},
      {"its worker drains", [this] { tables_.fleet.Find("w1")->draining = true; }, false},
      {"began, not leased",
       [this] {
         tables_.turns.Begin("w1", {"suspect", 0});
       },
       false},
      {"runs",
       [this] {
         Run({"suspect", 0}, "w1");
       },
       true},
      {"runs elsewhere",
       [this] {
         Run({"suspect", 0}, "w2");
       },
       false},
      {"committed",
       [this] {
         Change({"suspect", 0}, [](ChainRow* row) { row->crashes = 0; });
       },
       false},
      {"deleted", [this] { tables_.jobs.Remove("suspect"); }, false},
  };
  AddWorker("w1", 4)->chains_listed = 1;
  AddJob("other");  // waits, so that no turn begins on the worker whose turn has ended
  AddJob("suspect");
  Suspect({"suspect", 0});
  tables_.turns.Plan("w1", {"suspect", 0});
  for (const auto& c : cases) {
    c.change();
    const SoloTurns turns = Plan().turns;
    EXPECT_EQ(turns.Keeps("w1"), c.lasts) << c.name;
    EXPECT_EQ(turns.Rests("w1", kNow + limits::kSoloRest - absl::Nanoseconds(1)), !c.lasts) << c.name;
    tables_.fleet.Find("w1")->draining = false;
  }
}

TEST_F(SchedulingPlanTest, AWorkerThatRestsIsLeftToOtherChains) {
  AddWorker("w1", 1);
  AddJob("suspect");
  Suspect({"suspect", 0});
  tables_.turns.End("w1", kNow + absl::Seconds(1));
  EXPECT_THAT(Grants(), ElementsAre("suspect/0 w1")) << "it is empty, and nothing else waits";
  AddJob("other");
  EXPECT_THAT(Grants(), ElementsAre("other/0 w1"));
}

}  // namespace
}  // namespace chainfleet
