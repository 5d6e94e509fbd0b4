// Reads the targets of a stored data set in the server: scores need no torch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// int32 labels [num_rows], in row order. Blocks: run it on an Executor. INVALID_ARGUMENT: a label outside
// 0..num_classes-1 (of the job, not of the data set). DATA_LOSS: an object is gone or does not match its record.
absl::StatusOr<std::vector<int32_t>> ReadLabels(const BlobStore& blobs, const Dataset& dataset, int64_t num_classes);

// float32 targets [num_rows]; otherwise as ReadLabels.
absl::StatusOr<std::vector<float>> ReadNumbers(const BlobStore& blobs, const Dataset& dataset);

}  // namespace chainfleet
