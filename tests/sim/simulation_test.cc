// Runs many seeds, in shards that share the cores; or, by hand, the given seeds:
//
//   sim_test --seeds FIRST COUNT [--trace] [--sql]     exit status 0 if all keep the promises
//
// The coordinators' state is in maps or, with --sql, in the SQL that ships.
#include "tests/sim/simulation.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "core/base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {
namespace {

constexpr uint64_t kShards = 8, kSeedsPerShard = 250;
constexpr uint64_t kEverySql = 8;  // a run on SQL takes twice the time of one on maps: one seed of 8 runs on both

void PrintLine(const std::string& line) { std::cerr << line << "\n"; }

// Returns false if the run breaks a promise, and prints the seed, the events and the complaints on stderr.
bool RunSeed(uint64_t seed, bool trace, SimulationReport* sum, SimulatedState state = SimulatedState::kMaps) {
  const SimulationReport report =
      RunSimulation(seed, trace ? PrintLine : std::function<void(const std::string&)>(), state);
  sum->grants += report.grants;
  sum->commits += report.commits;
  sum->replayed += report.replayed;
  sum->preempted += report.preempted;
  for (const auto& [reason, count] : report.refusals) sum->refusals[reason] += count;
  for (const auto& [state, count] : report.ends) sum->ends[state] += count;
  if (report.complaints.empty()) return true;
  if (!trace) RunSimulation(seed, PrintLine, state);
  for (const std::string& complaint : report.complaints) std::cerr << "seed " << seed << ": " << complaint << "\n";
  std::cerr << "again with: sim_test --seeds " << seed << " 1" << (state == SimulatedState::kSql ? " --sql" : "")
            << "\n";
  return false;
}

void PrintSum(const SimulationReport& sum) {
  std::cout << sum.grants << " leases, " << sum.preempted << " taken for a higher tier, " << sum.commits << " commits, "
            << sum.replayed << " repeated; chains:";
  for (const auto& [state, count] : sum.ends) std::cout << " " << state << " " << count;
  std::cout << "; refused:";
  for (const auto& [reason, count] : sum.refusals)
    std::cout << " " << (reason.empty() ? "OTHER" : reason) << " " << count;
  std::cout << "\n";
}

class Seeds : public testing::TestWithParam<uint64_t> {};

TEST_P(Seeds, KeepThePromises) {
  SimulationReport sum;
  const uint64_t first = 1 + GetParam() * kSeedsPerShard;
  for (uint64_t seed = first; seed < first + kSeedsPerShard; ++seed) ASSERT_TRUE(RunSeed(seed, false, &sum)) << seed;
  PrintSum(sum);
  EXPECT_GT(sum.ends["SUCCEEDED"], 100 * sum.ends["FAILED"]) << "so few chains are lost with their workers so often";
  EXPECT_GT(sum.replayed, 0) << "in these seeds no commit is repeated";
  EXPECT_GT(sum.preempted, 0) << "in these seeds no chain gives way";
  for (const char* reason : {"LEASE_FENCED", "CHAIN_FINAL", "NOT_LEADER", "OUTCOME_UNKNOWN", "DISK_FULL"}) {
    EXPECT_GT(sum.refusals[reason], 0) << "these seeds never come to " << reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Shard, Seeds, testing::Range<uint64_t>(0, kShards));

TEST(Simulation, IsAFunctionOfItsSeed) {
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(RunSimulation(seed).journal, RunSimulation(seed).journal);
}

TEST(Simulation, RunsAlikeOnMapsAndOnTheSqlThatShips) {
  for (uint64_t seed = kEverySql; seed <= kShards * kSeedsPerShard; seed += kEverySql) {
    const SimulationReport sql = RunSimulation(seed, {}, SimulatedState::kSql);
    ASSERT_THAT(sql.complaints, testing::IsEmpty()) << "again with: sim_test --seeds " << seed << " 1 --sql";
    ASSERT_EQ(sql.journal, RunSimulation(seed).journal) << seed;
  }
}

int RunByHand(uint64_t first, uint64_t count, bool trace, SimulatedState state) {
  SimulationReport sum;
  uint64_t failures = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) failures += !RunSeed(seed, trace, &sum, state);
  PrintSum(sum);
  std::cout << count << " seeds from " << first << ", " << failures << " failed\n";
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool trace = std::ranges::find(arguments, "--trace") != arguments.end();
  chainfleet::InitLog("sim_test", trace ? "info" : "error");
  if (!chainfleet::InitializeDevice("cpu", 1).ok()) return 1;
  if (arguments.size() < 3 || arguments[0] != "--seeds") return RUN_ALL_TESTS();
  const bool sql = std::ranges::find(arguments, "--sql") != arguments.end();
  return chainfleet::RunByHand(std::stoull(arguments[1]), std::stoull(arguments[2]), trace,
                               sql ? chainfleet::SimulatedState::kSql : chainfleet::SimulatedState::kMaps);
}
