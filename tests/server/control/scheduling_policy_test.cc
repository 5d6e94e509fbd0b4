#include "server/control/scheduling_policy.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;

QueuedJob Job(const std::string& id, int32_t chains) {
  QueuedJob job{id, {}, {}};
  for (int32_t i = 0; i < chains; ++i) job.chains.push_back({i, ""});
  return job;
}

// Assigns one job after the other.
std::vector<Assignment> AssignInOrder(const std::vector<QueuedJob>& queue, const std::vector<FreeSlots>& free,
                                      size_t limit) {
  Placement placement(free);
  std::vector<Assignment> all;
  for (const QueuedJob& job : queue) {
    const std::vector<Assignment> taken = placement.Place(job, limit - all.size());
    all.insert(all.end(), taken.begin(), taken.end());
  }
  return all;
}

std::map<std::string, int> PerWorker(const std::vector<Assignment>& assignments) {
  std::map<std::string, int> count;
  for (const Assignment& a : assignments) ++count[a.worker];
  return count;
}

TEST(SchedulingPolicy, SpreadsFourChainsOverTwoWorkers) {
  const auto assignments = AssignInOrder({Job("a", 4)}, {{"w1", 4}, {"w2", 4}}, 100);
  EXPECT_EQ(PerWorker(assignments), (std::map<std::string, int>{{"w1", 2}, {"w2", 2}}));
}

TEST(SchedulingPolicy, CountsChainsThatAWorkerHoldsAlready) {
  QueuedJob job = Job("a", 2);
  job.held["w1"] = 2;
  EXPECT_EQ(PerWorker(AssignInOrder({job}, {{"w1", 8}, {"w2", 4}}, 100)), (std::map<std::string, int>{{"w2", 2}}));
}

TEST(SchedulingPolicy, SpreadsOverHostsBeforeWorkers) {
  const std::vector<FreeSlots> free{{"w1", 8, "a"}, {"w2", 8, "a"}, {"w3", 2, "b"}};
  EXPECT_EQ(PerWorker(AssignInOrder({Job("a", 4)}, free, 100)),
            (std::map<std::string, int>{{"w1", 1}, {"w2", 1}, {"w3", 2}}));
  EXPECT_EQ(PerWorker(AssignInOrder({Job("a", 10)}, free, 100)),
            (std::map<std::string, int>{{"w1", 4}, {"w2", 4}, {"w3", 2}}))
      << "what is full is passed over";
}

TEST(SchedulingPolicy, PacksChainsByTheirMemory) {
  QueuedJob big = Job("big", 4), small = Job("small", 10);
  big.chain_bytes = 40;
  small.chain_bytes = 10;
  const std::vector<FreeSlots> free{{"w1", 8, "a", 100}, {"w2", 8, "b", 50}};
  EXPECT_EQ(PerWorker(AssignInOrder({big}, free, 100)), (std::map<std::string, int>{{"w1", 2}, {"w2", 1}}));
  EXPECT_EQ(PerWorker(AssignInOrder({big, small}, free, 100)), (std::map<std::string, int>{{"w1", 4}, {"w2", 2}}))
      << "a smaller chain takes what a bigger one left";
}

TEST(SchedulingPolicy, AChainTooBigForEveryWorkerGoesToAnEmptyOne) {
  QueuedJob big = Job("big", 2);
  big.chain_bytes = 1000;
  EXPECT_TRUE(AssignInOrder({big}, {{"w1", 8, "a", 100, 3}}, 100).empty());
  EXPECT_EQ(AssignInOrder({big}, {{"w1", 8, "a", 100, 0}}, 100).size(), 1u);
  EXPECT_EQ(AssignInOrder({big}, {{"w1", 8, "a", std::nullopt, 3}}, 100).size(), 2u) << "unknown memory";
}

TEST(SchedulingPolicy, NeverOverfillsAWorker) {
  const auto assignments = AssignInOrder({Job("a", 10)}, {{"w1", 1}, {"w2", 5}, {"w3", 0}}, 100);
  EXPECT_EQ(PerWorker(assignments), (std::map<std::string, int>{{"w1", 1}, {"w2", 5}}));
}

TEST(SchedulingPolicy, OlderJobComesFirst) {
  EXPECT_THAT(AssignInOrder({Job("old", 2), Job("new", 2)}, {{"w1", 3}}, 100),
              ElementsAre(Assignment{{"old", 0}, "w1"}, Assignment{{"old", 1}, "w1"}, Assignment{{"new", 0}, "w1"}));
}

TEST(SchedulingPolicy, ShunsTheWorkerThatGaveTheChainBackUnlessItIsTheOnlyOne) {
  QueuedJob job = Job("a", 1);
  job.chains[0].avoided_worker = "w1";
  EXPECT_THAT(AssignInOrder({job}, {{"w1", 4}, {"w2", 1}}, 100), ElementsAre(Assignment{{"a", 0}, "w2"}));
  EXPECT_THAT(AssignInOrder({job}, {{"w1", 4}}, 100), ElementsAre(Assignment{{"a", 0}, "w1"}));
}

TEST(SchedulingPolicy, StopsAtItsLimit) {
  EXPECT_EQ(AssignInOrder({Job("a", 10), Job("b", 10)}, {{"w1", 100}}, 7).size(), 7u);
  EXPECT_TRUE(AssignInOrder({}, {{"w1", 100}}, 7).empty());
  EXPECT_TRUE(AssignInOrder({Job("a", 1)}, {}, 7).empty());
}

TEST(SchedulingPolicy, CountsTheChainsOfWorkersThatAreFull) {
  QueuedJob job = Job("a", 1);
  job.held["w1"] = 2;
  const std::vector<FreeSlots> free{{"w1", 0, "a"}, {"w2", 9, "a"}, {"w3", 1, "b"}};
  EXPECT_THAT(AssignInOrder({job}, free, 100), ElementsAre(Assignment{{"a", 0}, "w3"}));
}

TEST(SchedulingPolicy, AJobLeavesTheNextOneTheOrderThatItFound) {
  const std::vector<FreeSlots> free{{"w1", 2, "a"}, {"w2", 2, "b"}};
  EXPECT_THAT(AssignInOrder({Job("a", 1), Job("b", 2), Job("c", 1)}, free, 100),
              ElementsAre(Assignment{{"a", 0}, "w1"}, Assignment{{"b", 0}, "w2"}, Assignment{{"b", 1}, "w1"},
                          Assignment{{"c", 0}, "w2"}));
}

TEST(SchedulingPolicy, KnowsWhichChainsFindNoPlaceAnyMore) {
  Placement placement({{"w1", 4, "a", 100, 1}});
  QueuedJob big = Job("big", 1);
  big.chain_bytes = 101;
  EXPECT_TRUE(placement.MayFit(101, ""));
  EXPECT_TRUE(placement.Place(big).empty());
  EXPECT_FALSE(placement.MayFit(101, ""));
  EXPECT_FALSE(placement.MayFit(300, ""));
  EXPECT_TRUE(placement.MayFit(100, ""));
  EXPECT_EQ(placement.slots(), 4);
}

TEST(SchedulingPolicy, AWorkerOfATenantTakesNobodyElsesChains) {
  Placement placement(
      {{"own", 1, "a", std::nullopt, 0, {"token", "vision"}}, {"any", 1, "b", std::nullopt, 0, {"", "*"}}});
  QueuedJob speech = Job("speech", 2), vision = Job("vision", 2);
  speech.tenant = "speech";
  vision.tenant = "vision";
  EXPECT_THAT(placement.Place(speech), ElementsAre(Assignment{{"speech", 0}, "any"}));
  EXPECT_FALSE(placement.MayFit(0, "speech"));
  EXPECT_TRUE(placement.MayFit(0, "vision"));
  EXPECT_THAT(placement.Place(vision), ElementsAre(Assignment{{"vision", 0}, "own"}));
}

TEST(SchedulingPolicy, ASuspectOfATenantRunsOnItsWorkersOnly) {
  const SoloWorker own{"own", 3, {"token", "vision"}}, any{"any", 4, {}};
  const SuspectChain speech{{"speech", 0}, "", "speech"}, vision{{"vision", 0}, "own", "vision"};
  EXPECT_THAT(AssignAlone({speech, vision}, {own, any}),
              ElementsAre(Assignment{{"speech", 0}, "any"}, Assignment{{"vision", 0}, "own"}));
  EXPECT_TRUE(AssignAlone({speech}, {own}).empty());
}

TEST(SchedulingPolicy, NothingIsPlacedOnAClosedWorker) {
  Placement placement({{"w1", 4}, {"w2", 1}});
  placement.Close("w1");
  placement.Close("unknown");
  EXPECT_EQ(placement.slots(), 1);
  EXPECT_THAT(placement.Place(Job("a", 3)), ElementsAre(Assignment{{"a", 0}, "w2"}));
}

// The rule of the header as a plain search: tries every worker for every chain.
std::vector<Assignment> AssignPlainly(const std::vector<QueuedJob>& queue, std::vector<FreeSlots> free) {
  std::vector<Assignment> all;
  for (const QueuedJob& job : queue) {
    std::map<std::string, int32_t> in_worker = job.held, on_host;
    for (const FreeSlots& worker : free) {
      if (job.held.contains(worker.worker)) on_host[worker.host] += job.held.at(worker.worker);
    }
    for (const PendingChain& chain : job.chains) {
      const auto rank = [&](const FreeSlots& w) {
        return std::tuple(on_host[w.host], in_worker[w.worker], -w.slots, w.worker);
      };
      FreeSlots* best = nullptr;
      for (FreeSlots& worker : free) {
        if (worker.Fits(job.chain_bytes) && (best == nullptr || rank(worker) < rank(*best))) best = &worker;
      }
      if (best == nullptr) break;
      all.push_back({{job.job, chain.index}, best->worker});
      ++on_host[best->host];
      ++in_worker[best->worker];
      --best->slots;
      ++best->chains;
      if (best->bytes) *best->bytes -= job.chain_bytes;
    }
  }
  return all;
}

TEST(SchedulingPolicy, PlacesAsAPlainSearchDoes) {
  std::mt19937 random(7);
  const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % static_cast<uint32_t>(n)); };
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    std::vector<FreeSlots> free;
    for (int32_t i = 0, workers = 1 + below(7); i < workers; ++i) {
      free.push_back({absl::StrCat("w", i), below(4), absl::StrCat("host", below(3))});
    }
    std::vector<QueuedJob> queue;
    for (int32_t i = 0, jobs = 1 + below(4); i < jobs; ++i) {
      queue.push_back(Job(absl::StrCat("job", i), below(6)));
      for (int32_t held = below(3); held > 0; --held) queue.back().held[absl::StrCat("w", below(8))] = 1 + below(3);
    }
    EXPECT_EQ(AssignInOrder(queue, free, 1000), AssignPlainly(queue, free));
  }
}

// Twenty thousand slots on one host: sorting its thousand workers again for each slot would take minutes.
TEST(SchedulingPolicy, FillsAThousandWorkersEvenly) {
  std::vector<FreeSlots> free;
  for (int i = 0; i < 1000; ++i) free.push_back({absl::StrCat("w", i), 20, "host"});
  std::vector<QueuedJob> queue;
  for (int i = 0; i < 200; ++i) queue.push_back(Job(absl::StrCat("job", i), 100));
  const auto per_worker = PerWorker(AssignInOrder(queue, free, 20'000));
  EXPECT_EQ(per_worker.size(), 1000u);
  for (const auto& [worker, chains] : per_worker) EXPECT_EQ(chains, 20) << worker;
}

TEST(SchedulingPolicy, SuspectsGetAWorkerEachThatHasTheLeastToHandBack) {
  const std::vector<SoloWorker> workers{{"w1", 3}, {"w2", 0}, {"w3", 1}};
  EXPECT_THAT(AssignAlone({{{"a", 0}, ""}, {{"a", 5}, ""}}, workers),
              ElementsAre(Assignment{{"a", 0}, "w2"}, Assignment{{"a", 5}, "w3"}));
  EXPECT_THAT(AssignAlone({{{"a", 0}, "w2"}}, workers), ElementsAre(Assignment{{"a", 0}, "w3"}));
  EXPECT_THAT(AssignAlone({{{"a", 0}, "w2"}}, {{"w2", 0}}), ElementsAre(Assignment{{"a", 0}, "w2"}));
  EXPECT_EQ(AssignAlone({{{"a", 0}, ""}, {{"a", 1}, ""}}, {{"w1", 0}}).size(), 1u);
}

TEST(SchedulingPolicy, SuspectsNeverGetMoreThanHalfOfSeveralWorkers) {
  EXPECT_EQ(MaxSoloWorkers(1), 1);
  EXPECT_EQ(MaxSoloWorkers(2), 1);
  EXPECT_EQ(MaxSoloWorkers(3), 1);
  EXPECT_EQ(MaxSoloWorkers(8), 4);
}

}  // namespace
}  // namespace chainfleet
