// Rows of a stored data set as they are stored: single ones to look at, or many to write to a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// n rows in the order asked for, as they are stored: uint8 not divided by 255, nothing normalised.
struct RowValues {
  InputType type = InputType::kUint8;
  std::vector<int64_t> shape;   // [n, input_shape...]
  std::string inputs;           // dense, row-major, little-endian
  std::vector<int32_t> labels;  // [n]; or
  std::vector<float> targets;   // [n]
  static void Fields(auto& self, auto&& visit) {
    visit("type", self.type);
    visit("shape", self.shape);
    visit("inputs", self.inputs);
    visit("labels", self.labels);
    visit("targets", self.targets);
  }
};

// At most as many rows as one message carries; the same row may be asked for twice. Reads each object that has one of
// them once, one after the other. Blocks: run it on an Executor.
// INVALID_ARGUMENT for no rows; RESOURCE_EXHAUSTED for too many, saying how many it may be; OUT_OF_RANGE for a row that
// is not there; DATA_LOSS as DatasetShardFile says.
absl::StatusOr<RowValues> ReadRows(const BlobStore& blobs, const Dataset& dataset, const std::vector<int64_t>& rows);

}  // namespace chainfleet
