#include "server/telemetry/fleet_gauges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::IsEmpty;

class FleetGaugesTest : public testing::Test {
 protected:
  // A job of `chains` chains in `state`, of which the first kMostSeriesOfAKind of the fleet have series if they run.
  void Add(const std::string& id, int chains, ChainState state, JobState job_state = JobState::kRunning) {
    JobSummary job{.id = id, .state = job_state, .chains = {{state, chains}}};
    for (int32_t i = 0; i < chains; ++i) {
      job.step += 25;
      job.total_steps += 100;
      job.num_draws += 2;
      if (state != ChainState::kLeased) continue;
      ++job.stepped;
      job.energy_sum += 10.0 * (i + 1);
      job.energy_max = 10.0 * (i + 1);
      if (static_cast<int64_t>(fleet_.running.size()) == kMostSeriesOfAKind) continue;
      fleet_.running.push_back(
          {.id = {id, i}, .step = 25, .num_draws = 2, .stats = {.energy = 10.0 * (i + 1), .step_size = 0.5}});
    }
    fleet_.jobs.push_back(job);
  }
  const GaugeFamily& Find(const std::string& name) {
    families_ = FleetGauges(
        fleet_, [this](const std::string&) { return diagnostics_; }, workers_);
    return *std::ranges::find(families_, name, &GaugeFamily::name);
  }
  double Value(const std::string& name, const Labels& labels) {
    for (const GaugeFamily::Sample& sample : Find(name).samples) {
      if (sample.labels == labels) return sample.value;
    }
    ADD_FAILURE() << name << " has no such series";
    return 0;
  }

  FleetSummary fleet_;
  std::vector<Diagnostic> diagnostics_;
  std::vector<WorkerView> workers_;
  std::vector<GaugeFamily> families_;
};

TEST_F(FleetGaugesTest, ARunningChainHasSeriesByJobAndIndex) {
  Add("a", 2, ChainState::kLeased);
  EXPECT_EQ(Value("chainfleet_chain_energy", {{"job", "a"}, {"chain", "1"}}), 20);
  EXPECT_EQ(Value("chainfleet_chain_draws", {{"job", "a"}, {"chain", "1"}}), 2);
  EXPECT_THAT(Find("chainfleet_chain_acceptance_ratio").samples, IsEmpty()) << "no Metropolis chain";
  fleet_.running[0].stats.metropolis = MetropolisStats{.acceptance = 0.25};
  EXPECT_EQ(Value("chainfleet_chain_acceptance_ratio", {{"job", "a"}, {"chain", "0"}}), 0.25);
}

TEST_F(FleetGaugesTest, SeriesOfChainsThatEndedVanish) {
  Add("a", 1, ChainState::kLeased);
  EXPECT_EQ(Find("chainfleet_chain_energy").samples.size(), 1u);
  fleet_ = {};
  Add("a", 1, ChainState::kSucceeded, JobState::kSucceeded);
  EXPECT_THAT(Find("chainfleet_chain_energy").samples, IsEmpty());
  EXPECT_THAT(Find("chainfleet_job_draws").samples, IsEmpty());
}

TEST_F(FleetGaugesTest, ChainsBeyondTheMostAreCountedAndInTheirJobsFigures) {
  Add("a", 600, ChainState::kLeased);
  Add("b", 100, ChainState::kLeased);
  EXPECT_EQ(Find("chainfleet_chain_energy").samples.size(), 512u);
  EXPECT_EQ(Value("chainfleet_chains_without_series", {}), 188);
  EXPECT_EQ(Value("chainfleet_job_running_chains", {{"job", "b"}}), 100);
  EXPECT_DOUBLE_EQ(Value("chainfleet_job_energy_mean", {{"job", "b"}}), 505);
  EXPECT_EQ(Value("chainfleet_job_energy_max", {{"job", "b"}}), 1000);
  EXPECT_EQ(Value("chainfleet_job_progress_ratio", {{"job", "b"}}), 0.25);
  EXPECT_EQ(Value("chainfleet_job_steps", {{"job", "b"}}), 2500);
}

TEST_F(FleetGaugesTest, AJobHasTheMeansOfAllItsRunningChains) {
  Add("a", 600, ChainState::kLeased);
  Add("b", 4, ChainState::kLeased);
  JobSummary& job = fleet_.jobs[1];
  job.step_size_sum = 2;
  job.temperature_sum = 4;
  job.anchor_distance_sum = 8;
  const Labels labels = {{"job", "b"}};
  EXPECT_EQ(Value("chainfleet_job_step_size_mean", labels), 0.5);
  EXPECT_EQ(Value("chainfleet_job_temperature_mean", labels), 1);
  EXPECT_EQ(Value("chainfleet_job_anchor_distance_mean", labels), 2);
  EXPECT_THAT(Find("chainfleet_job_acceptance_ratio_mean").samples, IsEmpty()) << "no Metropolis chain";
  job.proposing = 2;
  job.acceptance_sum = 0.5;
  EXPECT_EQ(Value("chainfleet_job_acceptance_ratio_mean", labels), 0.25);
}

TEST_F(FleetGaugesTest, AJobCountsItsChainsInAnyState) {
  Add("a", 1, ChainState::kDiverged);
  fleet_.jobs[0].chains = {{ChainState::kDiverged, 1}, {ChainState::kPending, 60}, {ChainState::kSucceeded, 39}};
  EXPECT_EQ(Value("chainfleet_job_chains", {{"job", "a"}}), 100);
  EXPECT_EQ(Value("chainfleet_job_diverged_chains", {{"job", "a"}}), 1);
}

TEST_F(FleetGaugesTest, AJobThatEndsWithItsDrawsIsAsFarAsTheyAre) {
  Add("a", 1, ChainState::kLeased);
  const Labels labels = {{"job", "a"}};
  fleet_.jobs[0].num_draws = 90;
  EXPECT_EQ(Value("chainfleet_job_progress_ratio", labels), 0.25);
  for (const auto& [max_draws, progress] : std::map<double, double>{{1000, 0.25}, {120, 0.75}, {80, 1}}) {
    fleet_.jobs[0].max_draws = max_draws;
    EXPECT_EQ(Value("chainfleet_job_progress_ratio", labels), progress) << max_draws;
  }
}

TEST_F(FleetGaugesTest, LongNamesLeaveOutSeriesOfChainsAndOfWhateverNeedsMost) {
  const std::string long_name(70, 'j');
  Add("a", 2, ChainState::kLeased);
  for (int i = 0; i < 510; ++i) Add(absl::StrCat(long_name, i), 1, ChainState::kLeased);
  for (int i = 0; i < 512; ++i) workers_.push_back({.id = absl::StrCat("w", i), .host = std::string(253, 'h')});
  diagnostics_ = {{.point = 0, .quantity = "energy"}};
  for (const auto& [kind, series] : std::map<std::string, std::string>{{"chains", "chainfleet_chain_draws"},
                                                                       {"jobs", "chainfleet_job_draws"},
                                                                       {"workers", "chainfleet_fleet_worker_slots"}}) {
    const auto shown = static_cast<double>(Find(series).samples.size());
    EXPECT_GT(shown, 80) << kind;
    EXPECT_EQ(Value(absl::StrCat("chainfleet_", kind, "_without_series"), {}), (kind == "jobs" ? 511 : 512) - shown);
  }
  EXPECT_EQ(Value("chainfleet_chain_draws", {{"job", "a"}, {"chain", "1"}}), 2);
  EXPECT_GT(Value("chainfleet_workers_without_series", {}), 0);
}

TEST_F(FleetGaugesTest, AChainThatHasNotSteppedHasNoStatisticsAndItsJobNoEnergy) {
  fleet_.jobs = {{.id = "a",
                  .state = JobState::kRunning,

                  .chains = {{ChainState::kLeased, 1}},
                  .num_draws = 2}};
  fleet_.running = {{.id = {"a", 0}, .num_draws = 2}};
  for (const char* name :
       {"chainfleet_chain_energy", "chainfleet_chain_step_size", "chainfleet_chain_temperature",
        "chainfleet_chain_acceptance_ratio", "chainfleet_chain_anchor_distance", "chainfleet_chain_steps_per_second",
        "chainfleet_job_energy_mean", "chainfleet_job_energy_max", "chainfleet_job_step_size_mean",
        "chainfleet_job_temperature_mean", "chainfleet_job_acceptance_ratio_mean",
        "chainfleet_job_anchor_distance_mean"}) {
    EXPECT_THAT(Find(name).samples, IsEmpty()) << name;
  }
  EXPECT_EQ(Value("chainfleet_chain_draws", {{"job", "a"}, {"chain", "0"}}), 2);
  EXPECT_EQ(Value("chainfleet_chain_step", {{"job", "a"}, {"chain", "0"}}), 0);
}

TEST_F(FleetGaugesTest, JobsPointsAndWorkersBeyondTheMostAreCounted) {
  for (int i = 0; i < 600; ++i) Add(absl::StrCat("job-", i), 1, ChainState::kPending);
  Add("over", 1, ChainState::kSucceeded, JobState::kSucceeded);
  diagnostics_ = {{.point = 0, .quantity = "energy"}, {.point = 1, .quantity = "energy"}};
  for (int i = 0; i < 513; ++i) workers_.push_back({.id = absl::StrCat("w", i), .host = "h"});
  EXPECT_EQ(Find("chainfleet_job_draws").samples.size(), 512u);
  EXPECT_EQ(Value("chainfleet_jobs_without_series", {}), 88);
  EXPECT_EQ(Find("chainfleet_job_ess_bulk_min").samples.size(), 512u);
  EXPECT_EQ(Value("chainfleet_points_without_series", {}), 2 * 512 - 512);
  EXPECT_EQ(Find("chainfleet_fleet_worker_slots").samples.size(), 512u);
  EXPECT_EQ(Value("chainfleet_workers_without_series", {}), 1);
}

TEST_F(FleetGaugesTest, MeasuredValuesHaveSevenDigitsAndCountsAll) {
  Add("a", 1, ChainState::kLeased);
  const Labels labels = {{"job", "a"}, {"chain", "0"}};
  fleet_.running[0].num_draws = 123'456'789;
  EXPECT_EQ(Value("chainfleet_chain_draws", labels), 123'456'789);
  for (const auto& [measured, shown] : std::vector<std::pair<double, double>>{{12345.6789, 12345.68},
                                                                              {-0.000123456789, -0.0001234568},
                                                                              {9'999'999.96, 1e7},
                                                                              {0, 0},
                                                                              {1e-310, 1e-310},
                                                                              {INFINITY, INFINITY}}) {
    fleet_.running[0].stats.energy = measured;
    EXPECT_DOUBLE_EQ(Value("chainfleet_chain_energy", labels), shown);
  }
  fleet_.running[0].stats.energy = std::nan("");
  EXPECT_THAT(Find("chainfleet_chain_energy").samples, IsEmpty());
}

TEST_F(FleetGaugesTest, NothingIsLeftOutOfASmallFleet) {
  Add("a", 2, ChainState::kLeased);
  workers_ = {{.id = "w1", .host = "h"}};
  for (const char* name :
       {"chainfleet_chains_without_series", "chainfleet_jobs_without_series", "chainfleet_means_without_series",
        "chainfleet_points_without_series", "chainfleet_workers_without_series"}) {
    EXPECT_EQ(Value(name, {}), 0) << name;
  }
}

TEST_F(FleetGaugesTest, ThePointsWorstQuantityDecides) {
  Add("a", 2, ChainState::kLeased);
  diagnostics_ = {{.point = 0, .quantity = "energy", .rhat = 1.01, .ess_bulk = 300, .ess_tail = 90, .seconds = 50},
                  {.point = 0, .quantity = "theta.norm", .rhat = 1.3, .ess_bulk = 100, .ess_tail = 200, .seconds = 50},
                  {.point = 1, .quantity = "energy", .rhat = std::nan(""), .ess_bulk = 7, .ess_tail = 8}};
  const Labels first = {{"job", "a"}, {"point", "0"}}, second = {{"job", "a"}, {"point", "1"}};
  EXPECT_EQ(Value("chainfleet_job_rhat_max", first), 1.3);
  EXPECT_EQ(Value("chainfleet_job_ess_bulk_min", first), 100);
  EXPECT_EQ(Value("chainfleet_job_ess_tail_min", first), 90);
  EXPECT_EQ(Value("chainfleet_job_ess_per_second", first), 2);
  EXPECT_EQ(Find("chainfleet_job_ess_per_second").samples.size(), 1u) << "nobody knows when the others were made";
  EXPECT_EQ(Find("chainfleet_job_rhat_max").samples.size(), 1u) << "one chain has no R-hat";
  EXPECT_EQ(Value("chainfleet_job_ess_bulk_min", second), 7);
  EXPECT_THAT(Find("chainfleet_job_nested_rhat_max").samples, IsEmpty()) << "the chains share no starts";
  diagnostics_[0].nested_rhat = 1.25;
  diagnostics_[1].nested_rhat = 1.125;
  EXPECT_EQ(Value("chainfleet_job_nested_rhat_max", first), 1.25);
}

TEST_F(FleetGaugesTest, ChainsOfDifferentDataHaveNoRHat) {
  Add("a", 2, ChainState::kLeased);
  diagnostics_ = {{.point = 0, .quantity = "theta.norm", .chains = 100, .rhat = std::nan(""), .ess_bulk = 700}};
  EXPECT_EQ(Find("chainfleet_job_rhat_max").samples.size(), 1u) << "a fault of chains of one posterior";
  diagnostics_[0].ranks = Ranks();
  EXPECT_THAT(Find("chainfleet_job_rhat_max").samples, IsEmpty());
}

TEST_F(FleetGaugesTest, AQuantityThatDescribesDecidesNothing) {
  Add("a", 2, ChainState::kLeased);
  diagnostics_ = {{.point = 0, .quantity = "theta.norm", .rhat = 4, .ess_bulk = 7, .ess_tail = 7, .descriptive = true},
                  {.point = 0, .quantity = "theta.probability[3]", .rhat = 1.2, .ess_bulk = 60, .ess_tail = 50}};
  const Labels labels = {{"job", "a"}, {"point", "0"}};
  EXPECT_EQ(Value("chainfleet_job_rhat_max", labels), 1.2);
  EXPECT_EQ(Value("chainfleet_job_ess_bulk_min", labels), 60);
  EXPECT_EQ(Value("chainfleet_job_ess_tail_min", labels), 50);
}

TEST_F(FleetGaugesTest, AQuantityThatCannotBeJudgedIsTheWorst) {
  Add("a", 2, ChainState::kLeased);
  const double none = std::nan("");
  diagnostics_ = {{.point = 0, .quantity = "energy", .chains = 2, .values = 70, .rhat = 1.01, .ess_bulk = 300},
                  {.point = 0, .chains = 2, .values = 60, .rhat = none, .ess_bulk = none, .ess_tail = none}};
  const Labels labels = {{"job", "a"}, {"point", "0"}};
  EXPECT_EQ(Value("chainfleet_job_rhat_max", labels), INFINITY);
  EXPECT_EQ(Value("chainfleet_job_ess_bulk_min", labels), 0);
  EXPECT_EQ(Value("chainfleet_job_ess_tail_min", labels), 0);
  EXPECT_EQ(Value("chainfleet_job_trace_values", labels), 60);
}

TEST_F(FleetGaugesTest, AWorkerIsShownWithItsLastSign) {
  workers_ = {{.id = "w1", .host = "h", .chain_slots = 8, .chains = 3, .since_sync = absl::Seconds(4)}};
  const Labels labels = {{"worker", "w1"}, {"host", "h"}};
  EXPECT_EQ(Value("chainfleet_fleet_worker_last_sync_seconds", labels), 4);
  EXPECT_EQ(Value("chainfleet_fleet_worker_chains", labels), 3);
  EXPECT_EQ(Value("chainfleet_fleet_worker_slots", labels), 8);
}

TEST_F(FleetGaugesTest, AWorkerThatHandsItsChainsBackIsShownAsDraining) {
  workers_ = {{.id = "w1", .host = "h"}, {.id = "w2", .host = "h", .draining = true}};
  EXPECT_EQ(Value("chainfleet_fleet_worker_draining", {{"worker", "w1"}, {"host", "h"}}), 0);
  EXPECT_EQ(Value("chainfleet_fleet_worker_draining", {{"worker", "w2"}, {"host", "h"}}), 1);
}

TEST_F(FleetGaugesTest, OnlyWorkersThatServeMetricsAreTargets) {
  workers_ = {{.id = "w1"}, {.id = "w2", .metrics_address = "h2:7410"}};
  const std::vector<ScrapeTarget> targets = ScrapeTargets(workers_);
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].address, "h2:7410");
  EXPECT_EQ(targets[0].labels, (Labels{{"worker", "w2"}}));
}

}  // namespace
}  // namespace chainfleet
