// What a store that was put back from a backup needs before a coordinator serves it (protocol 9).
#pragma once

#include <cstdint>

#include "core/base/clock.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

struct RestoredStore {
  int64_t objects = 0;           // that the store refers to
  int64_t missing = 0;           // of them, each named in the log
  int64_t corrupt_segments = 0;  // whose object is missing: left out of predictions until it is back
  int64_t failed_chains = 0;     // that were not final and whose resume point is missing
};

// For a store opened as Opening::kRestored, before its state is loaded: chains that were leased when the backup was
// taken are PENDING again, which costs them no attempt, and every object that the store refers to is looked for.
// Segments without their object are marked corrupt, chains without their resume point are FAILED; shards of data sets
// and models that are missing are only told: putting the same file again under the same name brings them back. Blocks.
// Errors of both stores: the caller may repeat it.
absl::StatusOr<RestoredStore> TakeStock(const Clock& clock, StateStore* store, const BlobStore& blobs);

}  // namespace chainfleet
