#include "server/telemetry/fleet_gauges.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
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

// To 7 digits, which is what people read of a measured value; all 16 would be a tenth of a scrape.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double power = std::floor(std::log10(std::fabs(value)));
  if (std::fabs(power) > 200) return value;
  const double scale = std::pow(10.0, 6 - power);
  return std::round(value * scale) / scale;
}

double Acceptance(const ChainStats& stats) { return stats.metropolis ? stats.metropolis->acceptance : std::nan(""); }

double CountOf(const JobSummary& job, ChainState state) {
  const auto count = job.chains.find(state);
  return count == job.chains.end() ? 0 : static_cast<double>(count->second);
}

void AddDropped(const char* name, const char* help, int64_t dropped, std::vector<GaugeFamily>* all) {
  all->push_back({name, help, {{{}, static_cast<double>(dropped)}}});
}

// Of a chain that has stepped: what its worker measured, in the order of AddChains.
std::vector<double> Measured(const ChainStats& s) {
  if (!HasStepped(s)) return std::vector<double>(6, std::nan(""));
  return {Rounded(s.energy),      Rounded(s.step_size),       Rounded(s.temperature),
          Rounded(Acceptance(s)), Rounded(s.anchor_distance), Rounded(s.steps_per_second)};
}

void AddChains(const FleetSummary& fleet, std::vector<GaugeFamily>* all) {
  Families chains({{"chainfleet_chain_energy", "U at the last step's batch, full-data scale."},
                   {"chainfleet_chain_step_size", "Step size alpha of the last step."},
                   {"chainfleet_chain_temperature", "Temperature of the chain."},
                   {"chainfleet_chain_acceptance_ratio", "Share of a Metropolis chain's proposals accepted."},
                   {"chainfleet_chain_anchor_distance", "|theta - theta_a|; 0 without an anchor."},
                   {"chainfleet_chain_steps_per_second", "Steps per second, as its worker says."},
                   {"chainfleet_chain_draws", "Committed draws of the chain."},
                   {"chainfleet_chain_step", "Newest known step of the chain."}});
  for (const ChainSummary& chain : fleet.running) {
    std::vector<double> values = Measured(chain.stats);
    values.insert(values.end(), {static_cast<double>(chain.num_draws), static_cast<double>(chain.step)});
    chains.Add({{"job", chain.id.job}, {"chain", absl::StrCat(chain.id.index)}}, values);
  }
  double running = 0;
  for (const JobSummary& job : fleet.jobs) running += CountOf(job, ChainState::kLeased);
  chains.MoveTo(all);
  AddDropped("chainfleet_chains_without_series", "Running chains beyond the most that have series of their own.",
             static_cast<int64_t>(running) - static_cast<int64_t>(fleet.running.size()), all);
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
                 {static_cast<double>(job->num_draws), Rounded(progress), running, lost,
                  job->stepped > 0 ? Rounded(job->energy_sum / static_cast<double>(job->stepped)) : none,
                  job->stepped > 0 ? Rounded(job->energy_max) : none});
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
      if (++points > kMostSeriesOfAKind) continue;
      const double age = absl::ToDoubleSeconds(now - job->created_at);
      families.Add({{"job", job->id}, {"point", absl::StrCat(point)}},
                   {Rounded(w.rhat), Rounded(w.bulk), Rounded(w.tail), age > 0 ? Rounded(w.bulk / age) : std::nan("")});
    }
  }
  families.MoveTo(all);
  AddDropped("chainfleet_points_without_series", "Points of jobs with series that are beyond the most of points.",
             std::max<int64_t>(0, points - kMostSeriesOfAKind), all);
}

void AddWorkers(const std::vector<WorkerView>& workers, std::vector<GaugeFamily>* all) {
  Families families({{"chainfleet_fleet_worker_last_sync_seconds", "Time since the worker last synchronised."},
                     {"chainfleet_fleet_worker_chains", "Chains leased to the worker."},
                     {"chainfleet_fleet_worker_slots", "Chains that the worker takes in all."},
                     {"chainfleet_fleet_worker_draining", "1 while the worker hands its chains back."}});
  const int64_t count = std::min(std::ssize(workers), kMostSeriesOfAKind);
  for (const WorkerView& worker : std::span(workers).first(static_cast<size_t>(count))) {
    families.Add({{"worker", worker.id}, {"host", worker.host}},
                 {Rounded(absl::ToDoubleSeconds(worker.since_sync)), static_cast<double>(worker.chains),
                  static_cast<double>(worker.chain_slots), worker.draining ? 1.0 : 0.0});
  }
  families.MoveTo(all);
  AddDropped("chainfleet_workers_without_series", "Workers beyond the most that have series of their own.",
             std::ssize(workers) - count, all);
}

}  // namespace

std::vector<GaugeFamily> FleetGauges(const FleetSummary& fleet,
                                     const std::function<std::vector<Diagnostic>(const std::string& job)>& diagnostics,
                                     const std::vector<WorkerView>& workers, absl::Time now) {
  std::vector<const JobSummary*> open;
  for (const JobSummary& job : fleet.jobs) {
    if (!IsFinal(job.state)) open.push_back(&job);
  }
  const int64_t left_out = std::max<int64_t>(0, std::ssize(open) - kMostSeriesOfAKind);
  open.resize(open.size() - static_cast<size_t>(left_out));
  std::vector<GaugeFamily> all;
  AddChains(fleet, &all);
  AddJobs(open, &all);
  AddDropped("chainfleet_jobs_without_series", "Jobs that are not over, beyond the most that have series of their own.",
             left_out, &all);
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
