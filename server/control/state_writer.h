// The one way to the store for changes: a bounded queue in order, committed in groups, off the caller's lock.
#pragma once

#include <functional>
#include <memory>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

// Thread-safe.
class StateWriter {
 public:
  using Done = std::function<void(ApplyResult)>;

  // Groups hold at most limits::kStateWriterBatch changes; the queue limits::kStateWriterQueue. `on_lost` runs once, on
  // the executor, when the store is no longer ours or a commit's outcome is unknown; nothing is written after it.
  StateWriter(const Clock* clock, Executor* executor, StateStore* store,
              std::function<void(const absl::Status&)> on_lost);

  // Waits for the group being written, drops the rest with their callbacks, refuses what comes later (CANCELLED). Never
  // from inside a `done`. The store may go after it.
  void Close();

  // `done` runs exactly once, on the executor, in the order of Append, after the commit and holding no lock.
  // RESOURCE_EXHAUSTED / OVERLOADED if the queue is full, or the loss; `done` is not called then.
  absl::Status Append(StateChange change, Done done);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
