// What the runtime tells whoever keeps figures about it (metrics are a matter of other folders).
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet {

// Called from the device loop's and the executor's threads: thread-safe and quick, a few counters.
class RuntimeObserver {
 public:
  virtual ~RuntimeObserver() = default;

  // One step of a batch: `rows` chains moved by one step each.
  virtual void OnStep(int rows, absl::Duration took) = 0;
  // A commit was accepted, `bytes` of objects and inline resume point with it.
  virtual void OnCommit(int64_t draws, int64_t bytes) = 0;
  // One chain and kind of a prediction shard was computed.
  virtual void OnShardUnit(absl::Duration took) = 0;
};

}  // namespace chainfleet
