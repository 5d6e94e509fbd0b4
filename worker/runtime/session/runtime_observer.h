// The interface through which the runtime reports counts and durations (worker/telemetry turns them into metrics).
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet {

// One step of a batch.
struct StepFigures {
  int rows = 0;                        // chains that moved by one step
  int64_t gradients = 0;               // evaluations of one chain's gradient on a minibatch
  int64_t accepted = 0, rejected = 0;  // proposals of Metropolis chains
  absl::Duration took;
};

// The times of an answered prediction shard. load: until its draws and data were here. wait: from then until its end,
// without compute. compute: time of the device.
struct ShardFigures {
  absl::Duration load, wait, compute;
};

// Called from the threads of the device loop and the executor. Implementations must be thread-safe and fast.
class RuntimeObserver {
 public:
  virtual ~RuntimeObserver() = default;

  virtual void OnStep(const StepFigures& step) = 0;
  // A commit was accepted, with `bytes` of objects and inline resume point.
  virtual void OnCommit(int64_t draws, int64_t bytes) = 0;
  // One chain and kind of a prediction shard was computed.
  virtual void OnShardUnit(absl::Duration took) = 0;
  virtual void OnShard(const ShardFigures& shard) = 0;
};

}  // namespace chainfleet
