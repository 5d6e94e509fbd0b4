// The only caller of StateStore::Apply: every change of the coordinator goes through here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/store/state_store/state_store.h"
#include "server/control/reply.h"

namespace chainfleet {

// Thread-safe.
class StateWriter {
 public:
  using Done = std::function<void(ApplyResult)>;

  // `on_lost` runs once, when another coordinator took the store over or a commit's outcome is unknown. Nothing is
  // written after it. The pointers outlive the writer.
  StateWriter(const Clock* clock, Executor* executor, StateStore* store,
              std::function<void(const absl::Status&)> on_lost);
  // Closes the writer.
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;

  // Waits for the group that is being written, drops the other changes with their callbacks, and refuses later ones
  // (CANCELLED). The store may be destroyed afterwards. REQUIRES: not called by a `done`.
  void Close();

  // Queues a change. Changes are committed in the order of the calls, in groups of up to limits::kStateWriterBatch.
  // `done` runs exactly once, on the executor, after the commit and without a lock. If the queue holds
  // limits::kStateWriterQueue changes, the result is RESOURCE_EXHAUSTED / OVERLOADED; if the store is lost, it is the
  // loss.
  void Write(StateChange change, const Done& done);

  // As above; `done` gets the error, or the result of `take`, in a separate task.
  template <typename T, typename Take>
  void Write(StateChange change, const Reply<T>& done, Take take) {
    Write(std::move(change), [executor = executor_, done, take](const ApplyResult& result) {
      Send<T>(executor, done, result.status.ok() ? absl::StatusOr<T>(take(result)) : result.status);
    });
  }

  // Queues a change whose result is not needed. It is retried while the disk is full.
  void Persist(const StateChange& change);

  // `changed` runs, without a lock, after each commit that marks draws of the job corrupt, removes such a mark, expires
  // or purges draws. It has returned before the change's `done` runs and before Commit returns. New draws are not
  // reported. Set once.
  void OnDrawsChanged(std::function<void(const std::string& job)> changed);

  // Commits the changes in one transaction and returns their results in order. Blocks.
  absl::StatusOr<std::vector<ApplyResult>> Commit(const std::vector<StateChange>& changes);

 private:
  struct State;
  Executor* const executor_;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
