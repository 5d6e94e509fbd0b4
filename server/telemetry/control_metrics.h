// Metrics of the dispatcher. docs/reference/metrics.md has the table.
#pragma once

#include <map>

#include "core/metrics/metrics.h"
#include "server/control/control_observer.h"

namespace chainfleet {

// Thread-safe. `registry` outlives it.
class ControlMetrics final : public ControlObserver {
 public:
  explicit ControlMetrics(MetricsRegistry* registry);

  void OnGrant(absl::Duration waited) override;
  void OnLeaseEnd(LeaseOutcome outcome) override;
  void OnChainEnd(ChainState state) override { chains_ended_.at(state)->Add(); }
  void OnWorkerSilent() override { workers_lost_.Add(); }
  void OnPreempt(const ChainId&) override { preemptions_.Add(); }
  void OnCommit(const CommitFigures& figures) override;

 private:
  MetricsRegistry* const registry_;
  Counter& granted_;
  Histogram& scheduling_delay_;
  std::map<LeaseOutcome, Counter*> ended_;
  std::map<ChainState, Counter*> chains_ended_;  // by final state
  std::map<std::string, Counter*> refused_;      // commits by their reason
  Counter& workers_lost_;
  Counter& preemptions_;
  Counter& accepted_;
  Counter& draws_;
  Counter& bytes_;
  Histogram& commit_seconds_;
};

}  // namespace chainfleet
