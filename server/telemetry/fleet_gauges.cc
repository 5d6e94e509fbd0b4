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

void AddChains(const std::vector<JobView>& jobs, std::vector<GaugeFamily>* all) {
  Families chains({{"chainfleet_chain_energy", "U at the last step's batch, full-data scale."},
                   {"chainfleet_chain_step_size", "Step size alpha of the last step."},
                   {"chainfleet_chain_temperature", "Temperature of the chain."},
                   {"chainfleet_chain_acceptance_ratio", "Share of a Metropolis chain's proposals accepted."},
                   {"chainfleet_chain_anchor_distance", "|theta - theta_a|; 0 without an anchor."},
                   {"chainfleet_chain_draws", "Committed draws of the chain."},
                   {"chainfleet_chain_step", "Newest known step of the chain."},
                   {"chainfleet_chain_steps_per_second", "Steps per second, as its worker says."}});
  int64_t running = 0;
  for (const JobView& job : jobs) {
    for (const ChainView& chain : job.chains) {
      if (chain.state != ChainState::kLeased || ++running > kMostSeriesOfAKind) continue;
      const ChainStats& s = chain.stats;
      chains.Add({{"job", job.id}, {"chain", absl::StrCat(chain.id.index)}},
                 {s.energy, s.step_size, s.temperature, Acceptance(s), s.anchor_distance,
                  static_cast<double>(chain.num_draws), static_cast<double>(chain.step), s.steps_per_second});
    }
  }
  chains.MoveTo(all);
  const auto left_out = static_cast<double>(std::max<int64_t>(0, running - kMostSeriesOfAKind));
  all->push_back({"chainfleet_chains_without_series",
                  "Running chains beyond the most that have series of their own.",
                  {{{}, left_out}}});
}

// Over the running chains of a job, also of those without series.
void AddJobs(const std::vector<const JobView*>& jobs, std::vector<GaugeFamily>* all) {
  Families families({{"chainfleet_job_draws", "Committed draws of the job."},
                     {"chainfleet_job_progress_ratio", "Steps done of all steps of its chains."},
                     {"chainfleet_job_running_chains", "Chains of the job that are leased."},
                     {"chainfleet_job_diverged_chains", "Chains of the job that diverged or failed."},
                     {"chainfleet_job_energy_mean", "Mean energy of its running chains."},
                     {"chainfleet_job_energy_max", "Largest energy of its running chains."}});
  for (const JobView* job : jobs) {
    double draws = 0, steps = 0, total = 0, running = 0, lost = 0, energy = 0, highest = -HUGE_VAL;
    for (const ChainView& chain : job->chains) {
      draws += static_cast<double>(chain.num_draws);
      steps += static_cast<double>(chain.step);
      total += static_cast<double>(chain.total_steps);
      lost += chain.state == ChainState::kDiverged || chain.state == ChainState::kFailed;
      if (chain.state != ChainState::kLeased) continue;
      ++running;
      energy += chain.stats.energy;
      highest = std::max(highest, chain.stats.energy);
    }
    const double none = std::nan("");
    families.Add({{"job", job->id}}, {draws, total > 0 ? steps / total : 0, running, lost,
                                      running > 0 ? energy / running : none, running > 0 ? highest : none});
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

void AddDiagnostics(const std::vector<const JobView*>& jobs,
                    const std::function<std::vector<Diagnostic>(const std::string&)>& diagnostics, absl::Time now,
                    std::vector<GaugeFamily>* all) {
  Families families({{"chainfleet_job_rhat_max", "Largest rank-normalised split R-hat of the traced quantities."},
                     {"chainfleet_job_ess_bulk_min", "Smallest bulk effective sample size of the traced quantities."},
                     {"chainfleet_job_ess_tail_min", "Smallest tail effective sample size of the traced quantities."},
                     {"chainfleet_job_ess_per_second", "Smallest bulk ESS for each second since the job was made."}});
  int64_t points = 0;
  for (const JobView* job : jobs) {
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

std::vector<GaugeFamily> FleetGauges(const std::vector<JobView>& jobs,
                                     const std::function<std::vector<Diagnostic>(const std::string& job)>& diagnostics,
                                     const std::vector<WorkerView>& workers, absl::Time now) {
  std::vector<const JobView*> open;
  for (const JobView& job : jobs) {
    if (!IsFinal(job.state) && static_cast<int64_t>(open.size()) < kMostSeriesOfAKind) open.push_back(&job);
  }
  std::vector<GaugeFamily> all;
  AddChains(jobs, &all);
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
