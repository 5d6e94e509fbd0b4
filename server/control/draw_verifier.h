// Clears the mark of corrupt draws whose bytes are right again: their object was restored from a backup, or the first
// read was wrong. Draws without a mark are verified by their readers.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/state_writer.h"

namespace chainfleet {

// Thread-safe. `store`, `writer` and `blobs` outlive the executor's last task.
class DrawVerifier {
 public:
  DrawVerifier(Executor* executor, StateStore* store, StateWriter* writer, BlobStore* blobs);

  // Runs a pass soon and then every `interval`, on the executor, until this object is destroyed.
  void Start(absl::Duration interval);

  // Reads marked objects until about `budget_bytes` were read. Continues after the last object of the previous pass,
  // and starts over after the last one. Blocks. Returns the number of marks cleared. Errors of the store; an object
  // that cannot be read keeps its mark.
  absl::StatusOr<int64_t> Verify(int64_t budget_bytes);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
