// The size of a scrape of a large fleet: 20,000 running chains, 512 jobs with traces, 1,000 workers, all RPCs seen.
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/telemetry/control_metrics.h"
#include "server/telemetry/fleet_gauges.h"
#include "server/telemetry/predict_metrics.h"
#include "server/telemetry/server_metrics.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

constexpr int kJobs = 512, kChains = 20'000, kWorkers = 1000, kMethods = 40;
constexpr size_t kMostBytes = 1'000'000;

std::string JobName(int job) { return absl::StrCat("fashion-emcmc-", job, "-aaaaaa"); }

ChainSummary RunningChain(int number) {
  const double part = 1.0 / (number + 3);
  ChainSummary chain{.id = {JobName(number / (kChains / kJobs)), number % (kChains / kJobs)},
                     .step = 123'456 + number,
                     .num_draws = 1230 + number,
                     .stats = {12345.6789 + part, 1e-5 + part, 1e-4 + part, 463.2 + part, 98.7 + part}};
  chain.stats.metropolis = MetropolisStats{.acceptance = part};
  return chain;
}

FleetSummary Summary() {
  FleetSummary fleet;
  for (int j = 0; j < kJobs; ++j) {
    const int64_t chains = kChains / kJobs + (j < kChains % kJobs ? 1 : 0);
    fleet.jobs.push_back({.id = JobName(j),
                          .state = JobState::kRunning,
                          .created_at = absl::UnixEpoch(),
                          .chains = {{ChainState::kLeased, chains}},
                          .num_draws = 1'234'567 + j,
                          .step = 123'456'789 + j,
                          .total_steps = 1'000'000'000,
                          .stepped = chains,
                          .energy_sum = 1.0 / (j + 3),
                          .energy_max = 12345.6789 + 1.0 / (j + 3)});
  }
  for (int c = 0; c < static_cast<int>(kMostSeriesOfAKind); ++c) fleet.running.push_back(RunningChain(c));
  return fleet;
}

std::vector<WorkerView> Workers() {
  std::vector<WorkerView> workers;
  for (int w = 0; w < kWorkers; ++w) {
    workers.push_back({.id = absl::StrCat("gpu-node-", w),
                       .host = absl::StrCat("gpu-node-", w, ".cluster.example"),
                       .chain_slots = 32,
                       .chains = 20,
                       .since_sync = absl::Milliseconds(1234 + w)});
  }
  return workers;
}

std::vector<Diagnostic> TracesOf(const std::string& job) {
  const double part = 1.0 / static_cast<double>(job.size() + 3);
  return {{0, "energy", 39, 1000, 1.01 + part, 12345 + part, 2345 + part}};
}

TEST(Scrape, OfALargeFleetIsBelowAMegabyte) {
  MetricsRegistry registry("server");
  ServerMetrics server(&registry);
  ControlMetrics control(&registry);
  PredictMetrics predict(&registry);
  for (int method = 0; method < kMethods; ++method) {
    for (const char* code : {"OK", "UNAVAILABLE", "INVALID_ARGUMENT"}) {
      server.CountRpc(absl::StrCat("/chainfleet.v1.WorkerService/Method", method), code, absl::Milliseconds(3));
    }
  }
  registry.AtScrape([] { return FleetGauges(Summary(), TracesOf, Workers(), absl::UnixEpoch() + absl::Hours(7.123)); });
  const auto address = registry.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  const std::string page = Scrape(*address);
  EXPECT_NE(page.find("\nchainfleet_chains_without_series 19488"), std::string::npos);
  EXPECT_NE(page.find("\nchainfleet_job_ess_per_second{"), std::string::npos);
  EXPECT_LT(page.size(), kMostBytes);
  RecordProperty("bytes", static_cast<int>(page.size()));
}

}  // namespace
}  // namespace chainfleet
