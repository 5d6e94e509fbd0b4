// Reads rows of a stored data set as they are stored, to show single ones or to export many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/dataset.h"
#include "core/store/blob_store/blob_store.h"

namespace chainfleet {

// n rows in the requested order, as stored: uint8 is not divided by 255, nothing is normalised.
struct RowValues {
  InputType type = InputType::kUint8;
  std::vector<int64_t> shape;  // [n, input_shape...]
  std::string inputs;          // dense, row-major, little-endian
  TargetValues targets;
  static void Fields(auto& self, auto&& visit) {
    visit("type", self.type);
    visit("shape", self.shape);
    visit("inputs", self.inputs);
    // Written, never read.
    const std::vector<int32_t> no_labels;
    const std::vector<float> no_numbers;
    const auto* labels = std::get_if<std::vector<int32_t>>(&self.targets);
    visit("labels", labels != nullptr ? *labels : no_labels);
    const auto* numbers = std::get_if<std::vector<float>>(&self.targets);
    visit("targets", numbers != nullptr ? *numbers : no_numbers);
  }
};

// Reads at most as many rows as fit one message; `rows` may repeat a row. Reads each object that holds one of them
// once, one after the other. Blocks: run it on an Executor.
// INVALID_ARGUMENT: no rows. RESOURCE_EXHAUSTED: too many, and the error names the bound. OUT_OF_RANGE: a row does not
// exist. DATA_LOSS as for DatasetShardFile.
absl::StatusOr<RowValues> ReadRows(const BlobStore& blobs, const Dataset& dataset, const std::vector<int64_t>& rows);

}  // namespace chainfleet
