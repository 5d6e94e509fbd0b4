// The objects that workers write for chains: which worker may write which object, and which objects must exist before a
// commit may name them.
#pragma once

#include <cstdint>
#include <string>

#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/sessions.h"
#include "server/control/state_writer.h"

namespace chainfleet {

// Thread-safe. The constructor's arguments outlive it.
class ChainObjects {
 public:
  ChainObjects(StateStore* state, BlobStore* blobs, StateWriter* writer, const Dispatcher& dispatcher)
      : state_(state), blobs_(blobs), writer_(writer), sessions_(dispatcher) {}

  // Checks an upload before its bytes are accepted. INVALID_ARGUMENT: the object is not below its own chain and lease
  // epoch. FAILED_PRECONDITION / LEASE_FENCED: the lease is not current, was granted before the store was restored, or
  // belongs to another session than `session`. Does not block.
  absl::Status Admit(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                     const std::optional<WorkerIdentity>& session = std::nullopt) const;

  // Stores an admitted object; it is durable when Put returns OK. If the lease expired meanwhile, Put queues the chain
  // for the garbage collector. Blocks. DATA_LOSS / DIGEST_MISMATCH: the bytes do not match `ref`. Errors of
  // BlobStore::Put.
  absl::Status Put(const BlobRef& ref, const std::string& bytes) const;

  // True if Prepare must run before the commit. False for names that are not the chain's own and without its lease: the
  // dispatcher writes nothing for these. Does not block.
  bool MustPrepare(const ProgressCommit& commit) const;

  // Makes an object of an inline resume point if objects are encrypted, because the state store keeps resume points in
  // clear. Checks that the other objects of the commit exist with their sizes. Blocks. Errors of Put.
  // FAILED_PRECONDITION / BLOB_MISSING.
  absl::Status Prepare(ProgressCommit* commit) const;

 private:
  bool MustEncrypt(const ResumePoint& point) const { return !point.inline_bytes.empty() && blobs_->encrypts(); }

  StateStore* const state_;
  BlobStore* const blobs_;
  StateWriter* const writer_;
  const Sessions sessions_;
};

}  // namespace chainfleet
