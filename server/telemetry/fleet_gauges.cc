#include "server/telemetry/fleet_gauges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

// Families of one kind of thing, all with the same labels; their names and help once.
class Families {
 public:
  explicit Families(std::vector<std::pair<const char*, const char*>> names) {
    for (const auto& [name, help] : names) families_.push_back({name, help, {}});
  }

  // In the order of the names; NaN leaves a series out.
  void Add(const Labels& labels, const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isnan(values[i])) families_[i].samples.push_back({labels, values[i]});
    }
  }

  void MoveTo(std::vector<GaugeFamily>* all) {
    for (GaugeFamily& family : families_) all->push_back(std::move(family));
  }

 private:
  std::vector<GaugeFamily> families_;
};

double Acceptance(const ChainStats& stats) { return stats.metropolis ? stats.metropolis->acceptance : std::nan(""); }

double CountOf(const JobSummary& job, ChainState state) {
  const auto count = job.chains.find(state);
  return count == job.chains.end() ? 0 : static_cast<double>(count->second);
}

void AddChains(const FleetSummary& fleet, std::vector<GaugeFamily>* all) {
  Families chains({{"chainfleet_chain_energy", "U at the last step's batch, full-data scale."},
                   {"chainfleet_chain_step_size", "Step size alpha of the last step."},
                   {"chainfleet_chain_temperature", "Temperature of the chain."},
                   {"chainfleet_chain_acceptance_ratio", "Share of a Metropolis chain's proposals accepted."},
                   {"chainfleet_chain_anchor_distance", "|theta - theta_a|; 0 without an anchor."},
                   {"chainfleet_chain_draws", "Committed draws of the chain."},
                   {"chainfleet_chain_step", "Newest known step of the chain."},
                   {"chainfleet_chain_steps_per_second", "Steps per second, as its worker says."}});
  for (const ChainSummary& chain : fleet.running) {
    const ChainStats& s = chain.stats;
    chains.Add({{"job", chain.id.job}, {"chain", absl::StrCat(chain.id.index)}},
               {s.energy, s.step_size, s.temperature, Acceptance(s), s.anchor_distance,
                static_cast<double>(chain.num_draws), static_cast<double>(chain.step), s.steps_per_second});
  }
  double running = 0;
  for (const JobSummary& job : fleet.jobs) running += CountOf(job, ChainState::kLeased);
  chains.MoveTo(all);
  all->push_back({"chainfleet_chains_without_series",
                  "Running chains beyond the most that have series of their own.",
                  {{{}, running - static_cast<double>(fleet.running.size())}}});
}

// Over the running chains of a job, also of those without series.
void AddJobs(const std::vector<const JobSummary*>& jobs, std::vector<GaugeFamily>* all) {
  Families families({{"chainfleet_job_draws", "Committed draws of the job."},
                     {"chainfleet_job_progress_ratio", "Steps done of all steps of its chains."},
                     {"chainfleet_job_running_chains", "Chains of the job that are leased."},
                     {"chainfleet_job_diverged_chains", "Chains of the job that diverged or failed."},
                     {"chainfleet_job_energy_mean", "Mean energy of its running chains."},
                     {"chainfleet_job_energy_max", "Largest energy of its running chains."}});
  const double none = std::nan("");
  for (const JobSummary* job : jobs) {
    const double running = CountOf(*job, ChainState::kLeased);
    const double lost = CountOf(*job, ChainState::kDiverged) + CountOf(*job, ChainState::kFailed);
    const double progress =
        job->total_steps > 0 ? static_cast<double>(job->step) / static_cast<double>(job->total_steps) : 0;
    families.Add({{"job", job->id}},
                 {static_cast<double>(job->num_draws), progress, running, lost,
                  running > 0 ? job->energy_sum / running : none, running > 0 ? job->energy_max : none});
  }
  families.MoveTo(all);
}

// The worst of a point's quantities: what a stop would wait for.
struct Worst {
  double rhat = std::nan(""), bulk = std::nan(""), tail = std::nan("");
  void Add(const Diagnostic& d) {
    rhat = std::fmax(rhat, d.rhat);
    bulk = std::fmin(bulk, d.ess_bulk);
    tail = std::fmin(tail, d.ess_tail);
  }
};

void AddDiagnostics(const std::vector<const JobSummary*>& jobs,
                    const std::function<std::vector<Diagnostic>(const std::string&)>& diagnostics, absl::Time now,
                    std::vector<GaugeFamily>* all) {
  Families families({{"chainfleet_job_rhat_max", "Largest rank-normalised split R-hat of the traced quantities."},
                     {"chainfleet_job_ess_bulk_min", "Smallest bulk effective sample size of the traced quantities."},
                     {"chainfleet_job_ess_tail_min", "Smallest tail effective sample size of the traced quantities."},
                     {"chainfleet_job_ess_per_second", "Smallest bulk ESS for each second since the job was made."}});
  int64_t points = 0;
  for (const JobSummary* job : jobs) {
    std::map<int32_t, Worst> worst;
    for (const Diagnostic& d : diagnostics(job->id)) worst[d.point].Add(d);
    for (const auto& [point, w] : worst) {
      if (++points > kMostSeriesOfAKind) break;
      const double age = absl::ToDoubleSeconds(now - job->created_at);
      families.Add({{"job", job->id}, {"point", absl::StrCat(point)}},
                   {w.rhat, w.bulk, w.tail, age > 0 ? w.bulk / age : std::nan("")});
    }
  }
  families.MoveTo(all);
}

void AddWorkers(const std::vector<WorkerView>& workers, std::vector<GaugeFamily>* all) {
  Families families({{"chainfleet_fleet_worker_last_sync_seconds", "Time since the worker last synchronised."},
                     {"chainfleet_fleet_worker_chains", "Chains leased to the worker."},
                     {"chainfleet_fleet_worker_slots", "Chains that the worker takes in all."},
                     {"chainfleet_fleet_worker_draining", "1 while the worker hands its chains back."}});
  for (const WorkerView& worker : workers) {
    families.Add({{"worker", worker.id}, {"host", worker.host}},
                 {absl::ToDoubleSeconds(worker.since_sync), static_cast<double>(worker.chains),
                  static_cast<double>(worker.chain_slots), worker.draining ? 1.0 : 0.0});
  }
  families.MoveTo(all);
}

}  // namespace

std::vector<GaugeFamily> FleetGauges(const FleetSummary& fleet,
                                     const std::function<std::vector<Diagnostic>(const std::string& job)>& diagnostics,
                                     const std::vector<WorkerView>& workers, absl::Time now) {
  std::vector<const JobSummary*> open;
  for (const JobSummary& job : fleet.jobs) {
    if (!IsFinal(job.state) && static_cast<int64_t>(open.size()) < kMostSeriesOfAKind) open.push_back(&job);
  }
  std::vector<GaugeFamily> all;
  AddChains(fleet, &all);
  AddJobs(open, &all);
  AddDiagnostics(open, diagnostics, now, &all);
  AddWorkers(workers, &all);
  return all;
}

std::vector<ScrapeTarget> ScrapeTargets(const std::vector<WorkerView>& workers) {
  std::vector<ScrapeTarget> targets;
  for (const WorkerView& worker : workers) {
    if (!worker.metrics_address.empty()) targets.push_back({worker.metrics_address, {{"worker", worker.id}}});
  }
  return targets;
}

}  // namespace chainfleet
