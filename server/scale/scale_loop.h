// Keeps a cluster's workers at what the chains need: asks, lets go, and finds its jobs again after a restart.
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
// A worker that was told to hand its chains back has this long before its job is ended: more than its drain takes.
inline constexpr absl::Duration kLetGoTime = absl::Minutes(2);
// After a submission that failed, or a job that ended or was given up before its worker joined; doubles with each
// further one.
inline constexpr absl::Duration kFirstScaleBackoff = absl::Seconds(10), kMaxScaleBackoff = absl::Minutes(10);

// For metrics.
struct ScaleCounts {
  int32_t desired = 0, pending = 0, running = 0, ending = 0;  // workers of the cluster, at the last pass
  int64_t errors = 0;                                         // calls of the cluster that failed
  int64_t lost_jobs = 0;                                      // ended, or given up, before their workers joined
};

// A job that runs for ScaleSettings::join_within without its worker joining, or that the cluster holds, is no capacity
// to come: it is ended, and counted as lost.
//
// Thread-safe. Nothing is asked of the cluster while it cannot say what it runs, and nothing is remembered that List
// does not say again: a new process goes on where the last one was, but for how long workers have been idle.
class ScaleLoop {
 public:
  // `demand` is Dispatcher::Demand, called on the executor. `scaler` and `clock` outlive the executor's last task.
  ScaleLoop(const ScaleSettings& settings, Scaler* scaler, std::function<FleetDemand()> demand, const Clock* clock,
            Executor* executor);

  // A pass every kScaleInterval, on the executor, which must bear tasks that block, until this is destroyed.
  void Start();

  ScaleCounts counts() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
  Executor* const executor_;
};

}  // namespace chainfleet
