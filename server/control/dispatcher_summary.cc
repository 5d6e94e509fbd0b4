#include <algorithm>

#include "core/base/saturating.h"
#include "server/control/dispatcher_impl.h"

namespace chainfleet {
namespace {

void AddToSummary(const ChainEntry& chain, JobSummary* job) {
  ++job->chains[chain.row.state];
  job->step += chain.reported_step;
  if (chain.row.state != ChainState::kLeased || !HasStepped(chain.stats)) return;
  job->energy_sum += chain.stats.energy;
  job->energy_max = job->stepped == 0 ? chain.stats.energy : std::max(job->energy_max, chain.stats.energy);
  job->step_size_sum += chain.stats.step_size;
  job->temperature_sum += chain.stats.temperature;
  job->anchor_distance_sum += chain.stats.anchor_distance;
  ++job->stepped;
  if (!chain.stats.metropolis) return;
  job->acceptance_sum += chain.stats.metropolis->acceptance;
  ++job->proposing;
}

bool EveryChainEnded(const JobEntry& job) {
  return std::ranges::all_of(job.num_in_state, [](const auto& entry) { return IsFinal(entry.first); });
}

double MaxDraws(const JobSpec& spec) {
  return static_cast<double>(spec.until.max_draws.value_or(0)) * static_cast<double>(NumPoints(spec.sweep));
}

ChainSummary SummaryOf(const ChainEntry& chain) {
  const ChainStats& s = chain.stats;
  return {chain.row.id,
          chain.reported_step,
          chain.row.num_draws,
          {s.energy, s.step_size, s.temperature, s.steps_per_second, s.anchor_distance, s.metropolis, std::nullopt}};
}

}  // namespace

FleetSummary Dispatcher::Summary(size_t most_running) {
  Entered core(impl_.get());
  FleetSummary summary;
  const auto& jobs = core->jobs.by_age();
  summary.jobs.reserve(jobs.size());
  for (auto it = jobs.rbegin(); it != jobs.rend(); ++it) {
    const JobEntry& job = *it->second;
    JobSummary& sums = summary.jobs.emplace_back(
        JobSummary{.id = job.row.id, .state = job.state, .chains = {}, .num_draws = job.num_draws});
    sums.total_steps = SaturatingMultiply(job.total_steps, static_cast<int64_t>(job.chains.size()));
    sums.max_draws = MaxDraws(job.row.plan->spec);
    if (EveryChainEnded(job)) {  // their steps are committed, and the table holds the sums
      sums.chains = job.num_in_state;
      sums.step = job.num_steps;
      continue;
    }
    for (const ChainEntry& chain : job.chains) {
      AddToSummary(chain, &sums);
      const bool runs = chain.row.state == ChainState::kLeased;
      if (runs && summary.running.size() < most_running) summary.running.push_back(SummaryOf(chain));
    }
  }
  return summary;
}

}  // namespace chainfleet
