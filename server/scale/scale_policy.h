// How many workers a cluster should run for the chains there are: a pure function, so that its rules are a table of
// tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace chainfleet {

// Chains wait this long before a worker is asked for: those that run may be about to take them.
inline constexpr absl::Duration kAskAfter = absl::Seconds(5);
// Chains that wait this long beside free slots cannot take them: memory, or a worker that failed them.
inline constexpr absl::Duration kStuckAfter = absl::Minutes(1);

struct ScaleSettings {
  int32_t min_workers = 0, max_workers = 16;      // of the cluster; workers that run elsewhere are not counted
  int32_t chains_per_worker = 16;                 // slots that a worker is asked to have
  absl::Duration idle_after = absl::Minutes(5);   // how long without a chain before a worker is let go
  absl::Duration join_within = absl::Minutes(5);  // how long a job may run before its worker is known here
};

// One job of the cluster, which is one worker.
struct ScaledWorker {
  enum class State {
    kPending,  // waits in the cluster's queue
    kRunning,
    kEnding,  // let go, or out of its time: still there, but not for long
  };
  std::string job;
  State state = State::kPending;
  bool joined = false;      // it synchronizes with this coordinator
  absl::Duration idle_for;  // running, and without a chain since
};

struct ScaleFacts {
  int64_t waiting = 0;                // chains that want a slot
  absl::Duration waiting_for;         // since when some chain waits without a break; 0 if none does
  absl::Duration calm_for;            // since when none does; 0 if one does
  absl::Duration stuck_for;           // since when some chain waits beside a free slot without a break
  int64_t held = 0;                   // chains that live workers have
  int64_t free_slots = 0;             // of live workers that take chains
  int64_t other_slots = 0;            // in all, of live workers that run elsewhere
  std::vector<ScaledWorker> workers;  // of the cluster, oldest first
};

struct ScaleDecision {
  int32_t desired = 0;                // workers of the cluster, within the bounds
  int32_t ask = 0;                    // jobs to submit now
  std::vector<std::string> withdraw;  // jobs that wait in the queue for nothing
  std::vector<std::string> let_go;    // jobs whose workers are idle
  bool operator==(const ScaleDecision&) const = default;
};

// Grows at once to what waits (after kAskAfter) and shrinks slowly: a job in the queue is withdrawn when nothing has
// waited for `idle_after`, a worker let go when it had no chain for `idle_after` and nothing waits. A worker with
// chains is never let go, so the fleet may be larger than `desired`. With everything that still exists counted, there
// are never more than max_workers.
ScaleDecision DecideScale(const ScaleSettings& settings, const ScaleFacts& facts);

}  // namespace chainfleet
