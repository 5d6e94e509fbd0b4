#include "server/control/scheduling_policy.h"

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

TEST(SchedulingPolicy, AChainTooBigForEverybodyIsTriedAlone) {
  QueuedJob big = Job("big", 2);
  big.chain_bytes = 1000;
  EXPECT_TRUE(AssignInOrder({big}, {{"w1", 8, "a", 100, false}}, 100).empty());
  EXPECT_EQ(AssignInOrder({big}, {{"w1", 8, "a", 100, true}}, 100).size(), 1u);
  EXPECT_EQ(AssignInOrder({big}, {{"w1", 8, "a", std::nullopt, false}}, 100).size(), 2u) << "unknown memory";
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
  job.chains[0].shunned_worker = "w1";
  EXPECT_THAT(AssignInOrder({job}, {{"w1", 4}, {"w2", 1}}, 100), ElementsAre(Assignment{{"a", 0}, "w2"}));
  EXPECT_THAT(AssignInOrder({job}, {{"w1", 4}}, 100), ElementsAre(Assignment{{"a", 0}, "w1"}));
}

TEST(SchedulingPolicy, StopsAtItsLimit) {
  EXPECT_EQ(AssignInOrder({Job("a", 10), Job("b", 10)}, {{"w1", 100}}, 7).size(), 7u);
  EXPECT_TRUE(AssignInOrder({}, {{"w1", 100}}, 7).empty());
  EXPECT_TRUE(AssignInOrder({Job("a", 1)}, {}, 7).empty());
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
