// Deletes objects that nothing references now or later; docs/explanation/store_format.md has the rules. No decision
// depends on a clock. The cost of a pass depends on the garbage, not on the size of the store.
//
// Garbage that the store names (superseded resume points, shards of deleted data sets) is never needed again. A chain
// is swept when its epoch has risen, when it has ended and when its job was purged. The sweep lists the chain's objects
// first, then reads epoch, finality and references at once. An unreferenced object is deleted if its epoch is older,
// the chain is final or the job is deleted. Epochs only rise, so a stale read is still safe.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/state_writer.h"

namespace chainfleet {

// Several threads of the executor delete objects, if it has free ones. Thread-safe. `store`, `writer` and `blobs`
// outlive the executor's last task. Two concurrent passes are harmless but do all work twice.
class GarbageCollector {
 public:
  GarbageCollector(Executor* executor, StateStore* store, StateWriter* writer, BlobStore* blobs);

  // Declares the unfinished uploads of a dead process garbage, whether or not this collector is started. Called before
  // the first upload. Deletes nothing. Blocks. Errors of the store.
  absl::Status Recover();

  // Runs a pass soon and then every `interval`, on the executor, until this object is destroyed.
  void Start(absl::Duration interval);

  // No object is deleted from the return of this call until the result is destroyed. Blocks while a pass deletes a
  // page.
  std::shared_ptr<void> Hold();

  struct Pass {
    int64_t chains = 0, deleted = 0;
  };
  // Runs one whole pass, which ends early while there is a Hold; blocks. Objects that cannot be deleted are left to the
  // next pass: the others are deleted, then the first error is returned.
  absl::StatusOr<Pass> Collect();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
