// Prepares a store that was restored from a backup, before a coordinator serves it.
#pragma once

#include <cstdint>

#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/state_writer.h"

namespace chainfleet {

struct RestoredStore {
  int64_t objects = 0;           // objects that the store references
  int64_t missing = 0;           // missing objects among them; the log names each
  int64_t corrupt_segments = 0;  // segments without object: left out of predictions until it is back
  int64_t failed_chains = 0;     // chains that were not final and lost their resume point
  int64_t swept_chains = 0;      // chains with unreferenced objects, queued for a garbage sweep
  int64_t garbage = 0;           // unreferenced objects of data sets and models
};

// Takes stock of a store that was opened as Opening::kRestored, before its state is loaded and before any upload.
// Chains that were leased when the backup was taken become PENDING, which does not count as an attempt. The objects
// under the former incarnations are compared with the store's references, by one listing of each incarnation.
//
// Missing objects: segments are marked corrupt, and chains without their resume point are FAILED. Missing shards of
// data sets and models are only reported: uploading the same file under the same name restores them.
// Unreferenced objects were written after the backup. Chains that have such objects, also unknown chains, are queued
// for a garbage sweep; such objects of data sets and models are declared garbage. TakeStock deletes nothing itself.
//
// Holds the chains' records, the names of one chain and one page of the listing. Blocks. Errors of both stores; the
// caller may then call it again.
absl::StatusOr<RestoredStore> TakeStock(StateStore* store, StateWriter* writer, const BlobStore& blobs);

}  // namespace chainfleet
