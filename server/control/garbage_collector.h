// Deletes objects that nothing references and nothing will (protocol 3). No clock decides: a chain's objects are listed
// first, then its epoch, finality and references are read at once; what is unreferenced goes if its epoch is older or
// the chain is final or its job deleted. Epochs only rise, so an old read is still safe.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

// Thread-safe. Store and blobs must outlive the executor's last task.
class GarbageCollector {
 public:
  GarbageCollector(const Clock* clock, Executor* executor, StateStore* store, BlobStore* blobs);

  // A pass every `interval`, on the executor, until this is destroyed.
  void Start(absl::Duration interval);

  struct Pass {
    int64_t chains = 0, deleted = 0;
  };
  // One whole pass, here and now; blocks. An object that cannot be deleted is tried again by the next pass.
  absl::StatusOr<Pass> Collect();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
