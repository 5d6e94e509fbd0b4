#include "server/telemetry/control_metrics.h"

namespace chainfleet {
namespace {

Counter& CommitCounter(MetricsRegistry* registry, const std::string& outcome) {
  return registry->AddCounter("chainfleet_commits_total", "Commits of workers by outcome.", {{"outcome", outcome}});
}

}  // namespace

ControlMetrics::ControlMetrics(MetricsRegistry* registry)
    : registry_(registry),
      granted_(registry->AddCounter("chainfleet_leases_granted_total", "Leases granted.")),
      scheduling_delay_(registry->AddHistogram("chainfleet_scheduling_delay_seconds",
                                               "Seconds that a chain waited for its lease.",
                                               {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800})),
      workers_lost_(registry->AddCounter("chainfleet_workers_lost_total",
                                         "Workers lost: silent for a lease term without a drain.")),
      preemptions_(
          registry->AddCounter("chainfleet_preemptions_total", "Chains preempted by a chain of a higher tier.")),
      accepted_(CommitCounter(registry, "OK")),
      draws_(registry->AddCounter("chainfleet_committed_draws_total", "Draws in accepted commits.")),
      bytes_(registry->AddCounter("chainfleet_committed_bytes_total",
                                  "Bytes of segments and resume points in accepted commits.")),
      commit_seconds_(registry->AddHistogram(
          "chainfleet_commit_duration_seconds", "Seconds from the arrival of a commit to the store's answer.",
          {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5})) {
  for (const LeaseOutcome outcome : {LeaseOutcome::kLost, LeaseOutcome::kHung, LeaseOutcome::kOrdered,
                                     LeaseOutcome::kGivenBack, LeaseOutcome::kHopeless}) {
    ended_[outcome] =
        &registry->AddCounter("chainfleet_leases_ended_total", "Leases that ended without a final commit, by cause.",
                              {{"cause", ToString(outcome)}});
  }
  for (int i = 0; i <= static_cast<int>(ChainState::kCancelled); ++i) {
    const auto state = static_cast<ChainState>(i);
    if (!IsFinal(state)) continue;
    chains_ended_[state] = &registry->AddCounter("chainfleet_chains_ended_total", "Chains that ended, by final state.",
                                                 {{"state", ToString(state)}});
  }
  for (const char* reason : {"REPLAYED", "LEASE_FENCED", "CHAIN_FINAL", "PATH_CONFLICT"}) {
    refused_[reason] = &CommitCounter(registry, reason);
  }
}

void ControlMetrics::OnGrant(absl::Duration waited) {
  granted_.Add();
  scheduling_delay_.Observe(absl::ToDoubleSeconds(waited));
}

void ControlMetrics::OnLeaseEnd(LeaseOutcome outcome) { ended_.at(outcome)->Add(); }

void ControlMetrics::OnCommit(const CommitFigures& figures) {
  commit_seconds_.Observe(absl::ToDoubleSeconds(figures.took));
  if (figures.refused.empty() && !figures.replayed) {
    accepted_.Add();
    draws_.Add(static_cast<double>(figures.draws));
    bytes_.Add(static_cast<double>(figures.bytes));
    return;
  }
  const std::string reason = figures.replayed ? "REPLAYED" : figures.refused;
  const auto known = refused_.find(reason);  // without the registry's lock, which a scrape holds
  (known == refused_.end() ? CommitCounter(registry_, reason) : *known->second).Add();
}

}  // namespace chainfleet
