// Takes the mark from corrupt draws whose bytes are right again: their object was put back from a backup, or it was
// read wrongly in the first place. Draws without a mark are verified by whoever reads them.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/state_writer.h"

namespace chainfleet {

// Thread-safe. Store, writer and blobs must outlive the executor's last task.
class DrawVerifier {
 public:
  DrawVerifier(Executor* executor, StateStore* store, StateWriter* writer, BlobStore* blobs);

  // A pass soon and then every `interval`, on the executor, until this is destroyed.
  void Start(absl::Duration interval);

  // Reads marked objects until about `budget_bytes` were read, going on where the last pass ended and beginning again
  // after the last of them; blocks. Returns how many marks it took. Errors of the store; an object that cannot be read
  // keeps its mark.
  absl::StatusOr<int64_t> Verify(int64_t budget_bytes);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace chainfleet
