// Deletes objects that nothing references and nothing will; docs/explanation/store_format.md has the rules. No clock
// decides, and a pass costs what there is to collect, not what there is.
//
// Garbage that the store names (superseded resume points, shards of deleted data sets) is never wanted again.
// A chain is looked through when its epoch has risen, when it has ended and when its job was purged: its objects are
// listed first, then its epoch, finality and references are read at once; what is unreferenced goes if its epoch is
// older or the chain is final or its job deleted. Epochs only rise, so an old read is still safe.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/state_writer.h"

namespace chainfleet {

// Objects are deleted by several threads of the executor, if it has them to spare.
//
// Thread-safe. Store, writer and blobs must outlive the executor's last task. Passes of two at once do no harm, only
// all twice.
class GarbageCollector {
 public:
  GarbageCollector(Executor* executor, StateStore* store, StateWriter* writer, BlobStore* blobs);

  // Before the first upload: what uploads of a process that died have left becomes garbage, whether this collector is
  // started or not. Deletes nothing. Blocks. Errors of the store.
  absl::Status Recover();

  // A pass soon and then every `interval`, on the executor, until this is destroyed.
  void Start(absl::Duration interval);

  struct Pass {
    int64_t chains = 0, deleted = 0;
  };
  // One whole pass, here and now; blocks. What cannot be deleted is left to the next pass: the rest goes, then the
  // first error is returned.
  absl::StatusOr<Pass> Collect();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
