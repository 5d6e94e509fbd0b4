// The objects of a chain as a coordinator takes them from its worker: who may put which, and what must be there before
// a commit may name it.
#pragma once

#include <cstdint>
#include <string>

#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/sessions.h"
#include "server/control/state_writer.h"

namespace chainfleet {

// Thread-safe; all outlive it.
class ChainObjects {
 public:
  ChainObjects(StateStore* state, BlobStore* blobs, StateWriter* writer, const Dispatcher& dispatcher)
      : state_(state), blobs_(blobs), writer_(writer), sessions_(dispatcher) {}

  // Before its bytes are accepted. INVALID_ARGUMENT: a worker writes below its own chain and its own epoch, nowhere
  // else. FAILED_PRECONDITION / LEASE_FENCED: the lease is not current, was granted before the store was restored, or,
  // if a session is given, is another's. Does not block.
  absl::Status Admit(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                     const std::optional<WorkerIdentity>& session = std::nullopt) const;

  // An admitted object, durable when it returns OK; if its lease has passed meanwhile the chain is looked through once
  // more. Blocks. DATA_LOSS / DIGEST_MISMATCH: these are not the bytes of `ref`. Errors of BlobStore::Put.
  absl::Status Put(const BlobRef& ref, const std::string& bytes) const;

  // Whether there are objects to look for before the commit is made. None by names that are not its own: the dispatcher
  // has the answer to those. Does not block.
  bool MustLookFor(const ProgressCommit& commit) const;

  // The objects that a commit names exist, with the sizes it says. Blocks. FAILED_PRECONDITION / BLOB_MISSING.
  absl::Status CheckPresent(const ProgressCommit& commit) const;

 private:
  StateStore* const state_;
  BlobStore* const blobs_;
  StateWriter* const writer_;
  const Sessions sessions_;
};

}  // namespace chainfleet
