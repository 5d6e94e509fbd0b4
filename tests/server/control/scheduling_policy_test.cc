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
  const auto assignments = AssignByAge({Job("a", 4)}, {{"w1", 4}, {"w2", 4}}, 100);
  EXPECT_EQ(PerWorker(assignments), (std::map<std::string, int>{{"w1", 2}, {"w2", 2}}));
}

TEST(SchedulingPolicy, CountsChainsThatAWorkerHoldsAlready) {
  QueuedJob job = Job("a", 2);
  job.held["w1"] = 2;
  EXPECT_EQ(PerWorker(AssignByAge({job}, {{"w1", 8}, {"w2", 4}}, 100)), (std::map<std::string, int>{{"w2", 2}}));
}

TEST(SchedulingPolicy, NeverOverfillsAWorker) {
  const auto assignments = AssignByAge({Job("a", 10)}, {{"w1", 1}, {"w2", 5}, {"w3", 0}}, 100);
  EXPECT_EQ(PerWorker(assignments), (std::map<std::string, int>{{"w1", 1}, {"w2", 5}}));
}

TEST(SchedulingPolicy, OlderJobComesFirst) {
  EXPECT_THAT(AssignByAge({Job("old", 2), Job("new", 2)}, {{"w1", 3}}, 100),
              ElementsAre(Assignment{{"old", 0}, "w1"}, Assignment{{"old", 1}, "w1"}, Assignment{{"new", 0}, "w1"}));
}

TEST(SchedulingPolicy, ShunsTheWorkerThatGaveTheChainBackUnlessItIsTheOnlyOne) {
  QueuedJob job = Job("a", 1);
  job.chains[0].shunned_worker = "w1";
  EXPECT_THAT(AssignByAge({job}, {{"w1", 4}, {"w2", 1}}, 100), ElementsAre(Assignment{{"a", 0}, "w2"}));
  EXPECT_THAT(AssignByAge({job}, {{"w1", 4}}, 100), ElementsAre(Assignment{{"a", 0}, "w1"}));
}

TEST(SchedulingPolicy, StopsAtItsLimit) {
  EXPECT_EQ(AssignByAge({Job("a", 10), Job("b", 10)}, {{"w1", 100}}, 7).size(), 7u);
  EXPECT_TRUE(AssignByAge({}, {{"w1", 100}}, 7).empty());
  EXPECT_TRUE(AssignByAge({Job("a", 1)}, {}, 7).empty());
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
