// Adjusts the number of a cluster's workers to the chains: submits jobs, drains workers, and finds its jobs again after
// a restart.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "server/control/views.h"
#include "server/scale/scale_policy.h"
#include "server/scale/scaler.h"

namespace chainfleet {

inline constexpr absl::Duration kScaleInterval = absl::Seconds(5);
inline constexpr int kSubmitsPerPass = 8;
// A worker that was told to drain has this long before its job is killed: longer than a drain takes.
inline constexpr absl::Duration kReleaseTime = absl::Minutes(2);
// Backoff after a submission failed, or a job ended or was given up before its worker joined. Doubles with each further
// failure.
inline constexpr absl::Duration kFirstScaleBackoff = absl::Seconds(10), kMaxScaleBackoff = absl::Minutes(10);

// For metrics.
struct ScaleCounts {
  int32_t desired = 0, pending = 0, running = 0, ending = 0;  // workers of the cluster at the last pass
  int64_t errors = 0;                                         // failed calls of the cluster
  int64_t lost_jobs = 0;  // jobs that ended, or were given up, before their workers joined
};

// Gives up a job that the cluster holds, or that runs for ScaleSettings::join_within without its worker joining. Such a
// job is no capacity to come: it is ended, and counted as lost.
//
// Thread-safe. Requests nothing from the cluster while List fails. Remembers nothing that List does not report again,
// except how long workers have been idle, so a new process continues where the last one stopped.
class ScaleLoop {
 public:
  // `demand` is Dispatcher::Demand; the executor calls it. `scaler` and `clock` outlive the executor's last task.
  ScaleLoop(const ScaleSettings& settings, Scaler* scaler, std::function<FleetDemand()> demand, const Clock* clock,
            Executor* executor);

  // Runs a pass every kScaleInterval until this object is destroyed. The executor's tasks may block.
  void Start();

  ScaleCounts counts() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
  Executor* const executor_;
};

}  // namespace chainfleet
