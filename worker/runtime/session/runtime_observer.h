// The interface through which the runtime reports counts and durations (worker/telemetry turns them into metrics).
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet {

// One step of a batch.
struct StepFigures {
  int rows = 0;                        // chains moved by one step each
  int64_t gradients = 0;               // of a chain's potential over a batch of examples
  int64_t accepted = 0, rejected = 0;  // proposals of Metropolis chains
  absl::Duration took;
};

// A prediction shard that was answered: until its draws and data were here, until all of it was computed less the
// device's own time, and that.
struct ShardFigures {
  absl::Duration load, wait, compute;
};

// Called from the device loop's and the executor's threads: thread-safe and quick, a few counters.
class RuntimeObserver {
 public:
  virtual ~RuntimeObserver() = default;

  virtual void OnStep(const StepFigures& step) = 0;
  // A commit was accepted, `bytes` of objects and inline resume point with it.
  virtual void OnCommit(int64_t draws, int64_t bytes) = 0;
  // One chain and kind of a prediction shard was computed.
  virtual void OnShardUnit(absl::Duration took) = 0;
  virtual void OnShard(const ShardFigures& shard) = 0;
};

}  // namespace chainfleet
