// A data set decoded from uploaded files, whatever their format: what the server checks once and stores as canonical
// shards.
//
// Formats are told by content: IDX images + labels (.gz or plain), CIFAR-10 binary batches (records of 3073 bytes),
// .npz with arrays x and y, a pair of .npy files (inputs have more dimensions than labels), CSV with the label in the
// last column.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

struct UploadedFile {
  std::string name;  // for messages, and .csv or .bin decide by extension
  std::string bytes;
};

struct DecodedDataset {
  bool is_uint8 = false;             // else float32
  std::vector<int64_t> input_shape;  // {1, 28, 28}, {3, 32, 32}, {13}
  int64_t num_rows = 0;
  int64_t num_classes = 0;      // largest label + 1
  std::string inputs;           // [num_rows, input_shape...], row-major
  std::vector<int32_t> labels;  // [num_rows]
};

// INVALID_ARGUMENT says which file, what is wrong, and what was wanted: unreadable content, counts that differ, labels
// that are negative, not whole or over 65535, NaN or infinite inputs (with the row).
absl::StatusOr<DecodedDataset> DecodeDataset(const std::vector<UploadedFile>& files);

}  // namespace chainfleet
