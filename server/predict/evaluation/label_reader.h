// Reads the targets of a stored data set in the server: scores need no torch.
#pragma once

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// The targets [num_rows], in row order, for a job that learns `learned`. Blocks: run it on an Executor.
// INVALID_ARGUMENT: targets of the other type, or a label outside the job's classes. DATA_LOSS: an object is gone or
// does not match its record.
absl::StatusOr<TargetValues> ReadTargets(const BlobStore& blobs, const Dataset& dataset, const Targets& learned);

}  // namespace chainfleet
