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

// The length of the names of a fleet: each is filled up to these letters.
struct Letters {
  size_t job, worker, host;
};

class ScrapeTest : public testing::Test {
 protected:
  static std::string Filled(const std::string& name, size_t letters) {
    return name + std::string(letters > name.size() ? letters - name.size() : 0, 'a');
  }
  std::string JobName(int job) const { return Filled(absl::StrCat("fashion-emcmc-", job, "-"), letters_.job); }

  ChainSummary RunningChain(int number) const {
    const double part = 1.0 / (number + 3);
    ChainSummary chain{.id = {JobName(number / (kChains / kJobs)), number % (kChains / kJobs)},
                       .step = 123'456 + number,
                       .num_draws = 1230 + number,
                       .stats = {12345.6789 + part, 1e-5 + part, 1e-4 + part, 463.2 + part, 98.7 + part}};
    chain.stats.metropolis = MetropolisStats{.acceptance = part};
    return chain;
  }
  FleetSummary Summary() const {
    FleetSummary fleet;
    for (int j = 0; j < kJobs; ++j) {
      const int64_t chains = kChains / kJobs + (j < kChains % kJobs ? 1 : 0);
      fleet.jobs.push_back({.id = JobName(j),
                            .state = JobState::kRunning,

                            .chains = {{ChainState::kLeased, chains}},
                            .num_draws = 1'234'567 + j,
                            .step = 123'456'789 + j,
                            .total_steps = 1'000'000'000,
                            .stepped = chains,
                            .energy_sum = 1.0 / (j + 3),
                            .energy_max = 12345.6789 + 1.0 / (j + 3),
                            .step_size_sum = 1e-5 / (j + 3),
                            .temperature_sum = 1e-4 / (j + 3),
                            .anchor_distance_sum = 98.7 / (j + 3),
                            .proposing = chains,
                            .acceptance_sum = 1.0 / (j + 3)});
    }
    for (int c = 0; c < static_cast<int>(kMostSeriesOfAKind); ++c) fleet.running.push_back(RunningChain(c));
    return fleet;
  }
  std::vector<WorkerView> Workers() const {
    std::vector<WorkerView> workers;
    for (int w = 0; w < kWorkers; ++w) {
      workers.push_back({.id = Filled(absl::StrCat("gpu-node-", w), letters_.worker),
                         .host = Filled(absl::StrCat("gpu-node-", w, ".cluster.example"), letters_.host),
                         .chain_slots = 32,
                         .chains = 20,
                         .since_sync = absl::Milliseconds(1234 + w)});
    }
    return workers;
  }
  static std::vector<Diagnostic> TracesOf(const std::string& job) {
    const double part = 1.0 / static_cast<double>(job.size() + 3);
    return {{0, "energy", 39, 1000, 1.01 + part, 12345 + part, 2345 + part, 0, 0, 25642 + part}};
  }
  // Returns the page of a fleet with names of these letters.
  std::string Page(Letters letters) {
    letters_ = letters;
    MetricsRegistry registry("server");
    ServerMetrics server(&registry);
    ControlMetrics control(&registry);
    PredictMetrics predict(&registry);
    for (int method = 0; method < kMethods; ++method) {
      for (const char* code : {"OK", "UNAVAILABLE", "INVALID_ARGUMENT"}) {
        server.CountRpc(absl::StrCat("/chainfleet.v1.WorkerService/Method", method), code, absl::Milliseconds(3));
      }
    }
    registry.AtScrape([this] { return FleetGauges(Summary(), TracesOf, Workers()); });
    const auto address = registry.Serve("127.0.0.1:0");
    EXPECT_TRUE(address.ok()) << address.status();
    const std::string page = address.ok() ? Scrape(*address) : "";
    RecordProperty("bytes", static_cast<int>(page.size()));
    return page;
  }
  static int64_t Count(const std::string& page, const std::string& series) {
    int64_t count = 0;
    for (size_t at = page.find("\n" + series); at != std::string::npos; at = page.find("\n" + series, at + 1)) ++count;
    return count;
  }

  Letters letters_{};
};

TEST_F(ScrapeTest, StaysBelowAMegabyteForALargeFleetAndShowsAllJobsAndHundredsOfChains) {
  const std::string page = Page({.job = 21, .worker = 12, .host = 28});
  EXPECT_LT(page.size(), kMostBytes);
  EXPECT_GT(Count(page, "chainfleet_chain_energy{"), 200);
  EXPECT_EQ(Count(page, "chainfleet_job_draws{"), 512);
  const int64_t means = Count(page, "chainfleet_job_temperature_mean{");
  EXPECT_GT(means, 200) << "of the newest jobs, as many as chains and all else leave room for";
  EXPECT_NE(page.find(absl::StrCat("\nchainfleet_means_without_series ", kJobs - means, "\n")), std::string::npos);
  EXPECT_EQ(Count(page, "chainfleet_job_ess_per_second{"), 512);
  EXPECT_EQ(Count(page, "chainfleet_fleet_worker_slots{"), 512);
}

TEST_F(ScrapeTest, StaysBelowAMegabyteForTheLongestNamesAndCountsTheOmittedChains) {
  const std::string page = Page({.job = 70, .worker = 63, .host = 253});
  EXPECT_LT(page.size(), kMostBytes);
  EXPECT_GT(page.size(), kMostBytes * 8 / 10) << "more would have room";
  const int64_t chains = Count(page, "chainfleet_chain_energy{");
  EXPECT_GT(chains, 80);
  EXPECT_NE(page.find(absl::StrCat("\nchainfleet_chains_without_series ", kChains - chains, "\n")), std::string::npos);
  const int64_t workers = Count(page, "chainfleet_fleet_worker_slots{");
  EXPECT_GT(workers, 100);
  EXPECT_NE(page.find(absl::StrCat("\nchainfleet_workers_without_series ", kWorkers - workers, "\n")),
            std::string::npos);
}

TEST_F(ScrapeTest, ShowsTheMaximumOfEachKindForShortNames) {
  const std::string page = Page({.job = 0, .worker = 0, .host = 0});
  EXPECT_EQ(Count(page, "chainfleet_job_draws{"), 512);
  EXPECT_EQ(Count(page, "chainfleet_fleet_worker_slots{"), 512);
}

}  // namespace
}  // namespace chainfleet
