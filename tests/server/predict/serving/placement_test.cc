#include "server/predict/serving/placement.h"

#include <algorithm>
#include <map>

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

std::vector<ChainDraws> Chains(int32_t count) {
  std::vector<ChainDraws> chains;
  for (int32_t i = 0; i < count; ++i) chains.push_back({.chain = {"job-aaaaaa", i}, .segments = {}, .num_draws = 1});
  return chains;
}

std::map<ChainId, std::string> WorkerOf(const std::vector<ChainGroup>& groups) {
  std::map<ChainId, std::string> worker_of;
  for (const ChainGroup& group : groups) {
    for (const ChainDraws& chain : group.chains) worker_of[chain.chain] = group.worker;
  }
  return worker_of;
}

TEST(Placement, SpreadsChainsEvenly) {
  const std::vector<ChainGroup> groups = GroupChains(Chains(10), {"a", "b", "c"});
  ASSERT_EQ(groups.size(), 3u);
  for (const ChainGroup& group : groups) EXPECT_LE(group.chains.size(), 4u);
  EXPECT_EQ(WorkerOf(groups).size(), 10u);
}

TEST(Placement, NeverCrowdsOneWorker) {
  for (int job = 0; job < 20; ++job) {
    std::vector<ChainDraws> chains = Chains(4);
    for (ChainDraws& chain : chains) chain.chain.job = "job-" + std::to_string(job);
    const std::vector<ChainGroup> groups = GroupChains(chains, {"a", "b"});
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].chains.size(), 2u);
  }
}

TEST(Placement, DependsOnTheSetOfWorkersOnly) {
  EXPECT_EQ(WorkerOf(GroupChains(Chains(10), {"a", "b", "c"})), WorkerOf(GroupChains(Chains(10), {"c", "a", "b"})));
}

TEST(Placement, MovesFewChainsWhenAWorkerComes) {
  std::vector<std::string> workers;
  for (char id = 'a'; id <= 'j'; ++id) workers.emplace_back(1, id);
  const auto before = WorkerOf(GroupChains(Chains(200), workers));
  workers.emplace_back("k");
  const auto after = WorkerOf(GroupChains(Chains(200), workers));
  const auto moved =
      std::ranges::count_if(before, [&](const auto& item) { return after.at(item.first) != item.second; });
  EXPECT_LT(moved, 60);  // a hash modulo the number of workers would move about 180
  EXPECT_GT(moved, 0);
}

TEST(Placement, KeepsTheEntriesOfAChainTogetherInTheirOrder) {
  std::vector<ChainDraws> entries;
  for (const ChainDraws& chain : Chains(4)) {
    for (int64_t part = 1; part <= 5; ++part) {
      entries.push_back(chain);
      entries.back().num_draws = part;
    }
  }
  const std::vector<ChainGroup> groups = GroupChains(entries, {"a", "b"});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(WorkerOf(groups), WorkerOf(GroupChains(Chains(4), {"a", "b"})));
  for (const ChainGroup& group : groups) {
    ASSERT_EQ(group.chains.size(), 10u);
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(group.chains[i].num_draws, static_cast<int64_t>(i % 5) + 1);
  }
}

TEST(Placement, KeepsOneGroupWithoutWorkers) {
  const std::vector<ChainGroup> groups = GroupChains(Chains(3), {});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].worker, "");
  EXPECT_EQ(groups[0].chains.size(), 3u);
}

}  // namespace
}  // namespace chainfleet
