#include "server/telemetry/fleet_gauges.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr int64_t kPunctuation = 4, kPunctuationOfALabel = 4;  // in a series: braces, a space, a line break
constexpr int64_t kMostDigits = 13;                            // in a rounded value: -1.234567e-08

int64_t BytesOf(const Labels& labels) {
  int64_t bytes = kPunctuation;
  for (const auto& [name, value] : labels) {
    const auto escaped = std::ranges::count_if(value, [](char c) { return c == '"' || c == '\\' || c == '\n'; });
    bytes += kPunctuationOfALabel + std::ssize(name) + std::ssize(value) + escaped;
  }
  return bytes;
}

// Upper bound on the bytes of a value on the page.
int64_t BytesOf(double value) {
  const bool count = value == std::trunc(value) && std::fabs(value) < 1e15;
  return count ? std::ssize(absl::StrCat(static_cast<int64_t>(value))) : kMostDigits;
}

// The families of one kind of thing. All have the same labels; names and help are given once.
class Kind {
 public:
  explicit Kind(std::vector<std::pair<const char*, const char*>> names) {
    for (const auto& [name, help] : names) families_.push_back({name, help, {}});
  }

  // Adds the series of one thing, in the order of the names. NaN leaves a series out.
  void Add(Labels labels, std::vector<double> values) {
    const int64_t of_labels = BytesOf(labels);
    Thing thing{std::move(labels), std::move(values), 0};
    for (size_t i = 0; i < thing.values.size(); ++i) {
      if (std::isnan(thing.values[i])) continue;
      thing.bytes += std::ssize(families_[i].name) + of_labels + BytesOf(thing.values[i]);
    }
    bytes_ += thing.bytes;
    things_.push_back(std::move(thing));
  }

  // Upper bound on the bytes of all series on the page.
  int64_t bytes() const { return bytes_; }

  // Moves the series that fit into `room` bytes to `all`. Returns the number of things left out.
  int64_t MoveTo(int64_t room, std::vector<GaugeFamily>* all) && {
    int64_t left_out = 0;
    for (const Thing& thing : things_) {
      if (thing.bytes > room) {
        ++left_out;
        continue;
      }
      room -= thing.bytes;
      for (size_t i = 0; i < thing.values.size(); ++i) {
        if (!std::isnan(thing.values[i])) families_[i].samples.push_back({thing.labels, thing.values[i]});
      }
    }
    for (GaugeFamily& family : families_) all->push_back(std::move(family));
    return left_out;
  }

 private:
  struct Thing {
    Labels labels;
    std::vector<double> values;
    int64_t bytes;
  };
  std::vector<GaugeFamily> families_;
  std::vector<Thing> things_;
  int64_t bytes_ = 0;
};

// Each kind gets the bytes that it needs, or an equal share of the room that smaller kinds leave.
std::vector<int64_t> ShareRoom(int64_t room, const std::vector<const Kind*>& kinds) {
  std::vector<size_t> order(kinds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return kinds[i]->bytes(); });
  std::vector<int64_t> rooms(kinds.size());
  int64_t waiting = std::ssize(kinds);
  for (const size_t i : order) {
    rooms[i] = std::min(kinds[i]->bytes(), room / waiting--);
    room -= rooms[i];
  }
  return rooms;
}

// Rounds to 7 digits, enough for a measured value. All 16 digits would take a tenth of a scrape.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double power = std::floor(std::log10(std::fabs(value)));
  if (std::fabs(power) > 200) return value;
  const double scale = std::pow(10.0, 6 - power);
  return std::round(value * scale) / scale;
}

// NaN if `count` is 0.
double MeanOf(double sum, int64_t count) {
  return count > 0 ? Rounded(sum / static_cast<double>(count)) : std::nan("");
}

double Acceptance(const ChainStats& stats) { return stats.metropolis ? stats.metropolis->acceptance : std::nan(""); }

double CountOf(const JobSummary& job, ChainState state) {
  const auto count = job.chains.find(state);
  return count == job.chains.end() ? 0 : static_cast<double>(count->second);
}

void AddDropped(const char* name, const char* help, int64_t dropped, std::vector<GaugeFamily>* all) {
  all->push_back({name, help, {{{}, static_cast<double>(dropped)}}});
}

// The values that the worker measured for a chain, in the order of AddChains; NaN before its first step.
std::vector<double> Measured(const ChainStats& s) {
  if (!HasStepped(s)) return std::vector<double>(6, std::nan(""));
  return {Rounded(s.energy),      Rounded(s.step_size),       Rounded(s.temperature),
          Rounded(Acceptance(s)), Rounded(s.anchor_distance), Rounded(s.steps_per_second)};
}

Kind ChainsThatRun(const FleetSummary& fleet) {
  Kind chains({{"chainfleet_chain_energy", "Energy U of the last step's batch, scaled to the full data set."},
               {"chainfleet_chain_step_size", "Step size of the last step."},
               {"chainfleet_chain_temperature", "Temperature of the chain."},
               {"chainfleet_chain_acceptance_ratio", "Share of a Metropolis chain's proposals accepted."},
               {"chainfleet_chain_anchor_distance", "Distance |theta - theta_a| from the anchor; 0 without an anchor."},
               {"chainfleet_chain_steps_per_second", "Steps per second, measured by the chain's worker."},
               {"chainfleet_chain_draws", "Committed draws of the chain."},
               {"chainfleet_chain_step", "Newest known step of the chain."}});
  for (const ChainSummary& chain : fleet.running) {
    std::vector<double> values = Measured(chain.stats);
    values.insert(values.end(), {static_cast<double>(chain.num_draws), static_cast<double>(chain.step)});
    chains.Add({{"job", chain.id.job}, {"chain", absl::StrCat(chain.id.index)}}, std::move(values));
  }
  return chains;
}

int64_t RunningBeyond(const FleetSummary& fleet) {
  double running = 0;
  for (const JobSummary& job : fleet.jobs) running += CountOf(job, ChainState::kLeased);
  return static_cast<int64_t>(running) - std::ssize(fleet.running);
}

// A stop rule on draws may end the job long before its last step.
double Progress(const JobSummary& job) {
  const double steps = job.total_steps > 0 ? static_cast<double>(job.step) / static_cast<double>(job.total_steps) : 0;
  const double draws = job.max_draws > 0 ? static_cast<double>(job.num_draws) / job.max_draws : 0;
  return std::max(steps, std::min(draws, 1.0));
}

// Sums over all chains of a job, also those without series.
Kind OpenJobs(const std::vector<const JobSummary*>& jobs) {
  Kind families({{"chainfleet_job_draws", "Committed draws of the job."},
                 {"chainfleet_job_steps", "Sum of the newest known steps of the job's chains."},
                 {"chainfleet_job_progress_ratio",
                  "Fraction of the job's steps that are done, or of until.max_draws if that is larger."},
                 {"chainfleet_job_chains", "Chains of the job, in any state."},
                 {"chainfleet_job_running_chains", "Chains of the job that are leased."},
                 {"chainfleet_job_diverged_chains", "Chains of the job that diverged or failed."},
                 {"chainfleet_job_energy_mean", "Mean energy of the job's running chains."},
                 {"chainfleet_job_energy_max", "Largest energy of the job's running chains."}});
  for (const JobSummary* job : jobs) {
    double chains = 0;
    for (const auto& [state, count] : job->chains) chains += static_cast<double>(count);
    const double lost = CountOf(*job, ChainState::kDiverged) + CountOf(*job, ChainState::kFailed);
    families.Add({{"job", job->id}},
                 {static_cast<double>(job->num_draws), static_cast<double>(job->step), Rounded(Progress(*job)), chains,
                  CountOf(*job, ChainState::kLeased), lost, MeanOf(job->energy_sum, job->stepped),
                  job->stepped > 0 ? Rounded(job->energy_max) : std::nan("")});
  }
  return families;
}

// Means, over a job's chains, of the values that each chain shows.
Kind MeansOfChains(const std::vector<const JobSummary*>& jobs) {
  Kind families(
      {{"chainfleet_job_step_size_mean", "Mean step size of the job's running chains."},
       {"chainfleet_job_temperature_mean", "Mean temperature of the job's running chains."},
       {"chainfleet_job_acceptance_ratio_mean", "Mean acceptance ratio of the job's running Metropolis chains."},
       {"chainfleet_job_anchor_distance_mean", "Mean |theta - theta_a| of the job's running chains."}});
  for (const JobSummary* job : jobs) {
    families.Add({{"job", job->id}},
                 {MeanOf(job->step_size_sum, job->stepped), MeanOf(job->temperature_sum, job->stepped),
                  MeanOf(job->acceptance_sum, job->proposing), MeanOf(job->anchor_distance_sum, job->stepped)});
  }
  return families;
}

// The worst of a sweep point's deciding quantities, for which a stop rule would wait. A quantity without a judgement
// counts as the worst possible, but for nested R-hat; R-hat of a single chain is not a judgement, and chains of a job
// of kind sbc have none.
struct Worst {
  double rhat = std::nan(""), nested = std::nan(""), bulk = std::nan(""), tail = std::nan(""), values = std::nan("");
  double seconds = 0;
  void Add(const Diagnostic& d) {
    const bool unknown = std::isnan(d.rhat) && d.chains >= 2 && !d.ranks;
    rhat = std::fmax(rhat, unknown ? std::numeric_limits<double>::infinity() : d.rhat);
    if (d.nested_rhat) nested = std::fmax(nested, *d.nested_rhat);
    bulk = std::fmin(bulk, std::isnan(d.ess_bulk) ? 0 : d.ess_bulk);
    tail = std::fmin(tail, std::isnan(d.ess_tail) ? 0 : d.ess_tail);
    values = std::fmin(values, static_cast<double>(d.values));
    seconds = std::max(seconds, d.seconds);
  }
};

struct Points {
  Kind kind;
  int64_t beyond = 0;  // points above the bound
};

Points PointsOf(const std::vector<const JobSummary*>& jobs,
                const std::function<std::vector<Diagnostic>(const std::string&)>& diagnostics) {
  Points points{Kind(
      {{"chainfleet_job_rhat_max",
        "Largest rank-normalised split R-hat of the job's deciding quantities; +Inf if one has no R-hat."},
       {"chainfleet_job_nested_rhat_max",
        "Largest nested R-hat of the job's deciding quantities, for chains that share their starts."},
       {"chainfleet_job_ess_bulk_min", "Smallest bulk effective sample size of the job's deciding quantities."},
       {"chainfleet_job_ess_tail_min", "Smallest tail effective sample size of the job's deciding quantities."},
       {"chainfleet_job_ess_per_second",
        "Smallest bulk ESS divided by the seconds that it took to produce the traced values."},
       {"chainfleet_job_trace_values", "Traced values per chain that the job's diagnostics read, at most 1,000."}})};
  int64_t count = 0;
  for (const JobSummary* job : jobs) {
    std::map<int32_t, Worst> worst;
    for (const Diagnostic& d : diagnostics(job->id)) {
      if (!d.descriptive) worst[d.point].Add(d);
    }
    for (const auto& [point, w] : worst) {
      if (++count > kMostSeriesOfAKind) continue;
      points.kind.Add({{"job", job->id}, {"point", absl::StrCat(point)}},
                      {Rounded(w.rhat), Rounded(w.nested), Rounded(w.bulk), Rounded(w.tail),
                       w.seconds > 0 ? Rounded(w.bulk / w.seconds) : std::nan(""), w.values});
    }
  }
  points.beyond = std::max<int64_t>(0, count - kMostSeriesOfAKind);
  return points;
}

Kind Workers(std::span<const WorkerView> workers) {
  Kind families({{"chainfleet_fleet_worker_last_sync_seconds", "Seconds since the worker last synchronised."},
                 {"chainfleet_fleet_worker_chains", "Chains leased to the worker."},
                 {"chainfleet_fleet_worker_slots", "Chain slots of the worker."},
                 {"chainfleet_fleet_worker_draining", "1 while the worker drains."}});
  for (const WorkerView& worker : workers) {
    families.Add({{"worker", worker.id}, {"host", worker.host}},
                 {Rounded(absl::ToDoubleSeconds(worker.since_sync)), static_cast<double>(worker.chains),
                  static_cast<double>(worker.chain_slots), worker.draining ? 1.0 : 0.0});
  }
  return families;
}

}  // namespace

std::vector<GaugeFamily> FleetGauges(const FleetSummary& fleet,
                                     const std::function<std::vector<Diagnostic>(const std::string& job)>& diagnostics,
                                     const std::vector<WorkerView>& workers) {
  std::vector<const JobSummary*> open;
  for (const JobSummary& job : fleet.jobs) {
    if (!IsFinal(job.state)) open.push_back(&job);
  }
  const int64_t jobs_beyond = std::max<int64_t>(0, std::ssize(open) - kMostSeriesOfAKind);
  open.resize(open.size() - static_cast<size_t>(jobs_beyond));
  const int64_t shown_workers = std::min(std::ssize(workers), kMostSeriesOfAKind);
  Kind chains = ChainsThatRun(fleet), jobs = OpenJobs(open), means = MeansOfChains(open);
  Points points = PointsOf(open, diagnostics);
  Kind listed = Workers(std::span(workers).first(static_cast<size_t>(shown_workers)));
  // Alerts and tables use all series except those of chains, which are only some of many anyway, and of their means.
  // These two get the room that the others leave.
  const int64_t of_chains = std::min(chains.bytes(), kMostSeriesBytes / 6);
  const std::vector<int64_t> rooms = ShareRoom(kMostSeriesBytes - of_chains, {&jobs, &points.kind, &listed});
  const int64_t left = kMostSeriesBytes - std::accumulate(rooms.begin(), rooms.end(), int64_t{0});
  const int64_t of_means = std::min(means.bytes(), left - of_chains);
  std::vector<GaugeFamily> all;
  const int64_t chains_dropped = std::move(chains).MoveTo(left - of_means, &all);
  AddDropped("chainfleet_chains_without_series", "Running chains without series of their own.",
             RunningBeyond(fleet) + chains_dropped, &all);
  const int64_t jobs_dropped = std::move(jobs).MoveTo(rooms[0], &all);
  AddDropped("chainfleet_jobs_without_series", "Unfinished jobs without series of their own.",
             jobs_beyond + jobs_dropped, &all);
  const int64_t means_dropped = std::move(means).MoveTo(of_means, &all);
  AddDropped("chainfleet_means_without_series", "Jobs without series of their chains' means.",
             jobs_beyond + means_dropped, &all);
  const int64_t points_dropped = std::move(points.kind).MoveTo(rooms[1], &all);
  AddDropped("chainfleet_points_without_series", "Sweep points of unfinished jobs without series of their own.",
             points.beyond + points_dropped, &all);
  const int64_t workers_dropped = std::move(listed).MoveTo(rooms[2], &all);
  AddDropped("chainfleet_workers_without_series", "Workers without series of their own.",
             std::ssize(workers) - shown_workers + workers_dropped, &all);
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
