// Decides how many workers a cluster should run. A pure function, so that its rules can be tested as a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace chainfleet {

// Chains wait this long before a worker is requested: running workers may be about to take them.
inline constexpr absl::Duration kAskAfter = absl::Seconds(5);
// Chains that wait this long although slots are free cannot take them: they lack memory, or a worker failed them.
inline constexpr absl::Duration kStuckAfter = absl::Minutes(1);

struct ScaleSettings {
  int32_t min_workers = 0, max_workers = 16;      // bounds for the cluster; workers elsewhere are not counted
  int32_t chains_per_worker = 16;                 // slots that each worker is started with
  absl::Duration idle_after = absl::Minutes(5);   // time without a chain before a worker is drained
  absl::Duration join_within = absl::Minutes(5);  // time that a job may run before its worker joins
};

// One job of the cluster; it runs one worker.
struct ScaledWorker {
  enum class State {
    kPending,  // waits in the cluster's queue
    kRunning,
    kEnding,  // draining or out of time: still running, but not for long
  };
  std::string job;
  State state = State::kPending;
  bool joined = false;      // its worker has synchronized with this coordinator
  absl::Duration idle_for;  // time that it has run without a chain
};

struct ScaleFacts {
  int64_t waiting = 0;                // chains that need a slot
  absl::Duration waiting_for;         // time for which some chain has waited without interruption; 0 if none waits
  absl::Duration calm_for;            // time for which no chain has waited; 0 if one waits
  absl::Duration stuck_for;           // time for which some chain has waited without interruption while slots were free
  int64_t held = 0;                   // chains leased to live workers
  int64_t free_slots = 0;             // slots of live workers that accept chains
  int64_t other_slots = 0;            // all slots of live workers that run elsewhere
  std::vector<ScaledWorker> workers;  // workers of the cluster, oldest first
};

struct ScaleDecision {
  int32_t desired = 0;                // workers of the cluster, within the bounds
  int32_t ask = 0;                    // jobs to submit now
  std::vector<std::string> withdraw;  // queued jobs that are no longer needed
  std::vector<std::string> released;  // jobs whose workers are idle
  bool operator==(const ScaleDecision&) const = default;
};

// Grows at once to serve chains that have waited for kAskAfter, and shrinks slowly: a queued job is withdrawn when no
// chain has waited for `idle_after`, and a worker is drained when it has had no chain for `idle_after` and no chain
// waits. A worker with chains is never drained, so the fleet may be larger than `desired`. There are never more than
// max_workers, ending ones included.
ScaleDecision DecideScale(const ScaleSettings& settings, const ScaleFacts& facts);

}  // namespace chainfleet
