// The targets of a stored data set, read by the server itself: scores need no torch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// [num_rows], in row order. Blocks: run it on an Executor. INVALID_ARGUMENT for a label outside 0..num_classes-1 (of
// the job, not the data set); DATA_LOSS for an object that is gone or is not what the record says.
absl::StatusOr<std::vector<int32_t>> ReadLabels(const BlobStore& blobs, const Dataset& dataset, int64_t num_classes);

// Float32 targets, likewise.
absl::StatusOr<std::vector<float>> ReadNumbers(const BlobStore& blobs, const Dataset& dataset);

}  // namespace chainfleet
