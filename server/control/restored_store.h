// What a store that was put back from a backup needs before a coordinator serves it.
#pragma once

#include <cstdint>

#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "server/control/state_writer.h"

namespace chainfleet {

struct RestoredStore {
  int64_t objects = 0;           // that the store refers to
  int64_t missing = 0;           // of them, each named in the log
  int64_t corrupt_segments = 0;  // whose object is missing: left out of predictions until it is back
  int64_t failed_chains = 0;     // that were not final and whose resume point is missing
  int64_t swept_chains = 0;      // queued, for objects that no record of theirs names
  int64_t garbage = 0;           // objects of data sets and models that none has
};

// For a store opened as Opening::kRestored, before its state is loaded and before anybody uploads: chains that were
// leased when the backup was taken are PENDING again, which costs them no attempt, and what there is under the former
// incarnations is held against what the store refers to, by one listing of each.
//
// Missing: segments are marked corrupt, chains without their resume point are FAILED; shards of data sets and models
// are only told: putting the same file again under the same name brings them back.
// Too much, as it was written after the backup: chains with such objects, those that the store does not know included,
// are queued for the sweep, objects of data sets and models are named garbage. Deletes nothing itself.
//
// Holds the chains' rows, the names of one chain and a page of the listing. Blocks. Errors of both stores: the caller
// may repeat it.
absl::StatusOr<RestoredStore> TakeStock(StateStore* store, StateWriter* writer, const BlobStore& blobs);

}  // namespace chainfleet
