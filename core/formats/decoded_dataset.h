// A data set decoded from uploaded files of any format. The server checks the data set once and stores it as canonical
// shards.
//
// The content tells the format: IDX images + labels (.gz or plain), CIFAR-10 and CIFAR-100 binary batches, .npz or
// zipped Zarr group with arrays x and y, a pair of .npy files (inputs have more dimensions than labels), CSV.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/formats/admit_bytes.h"

namespace chainfleet {

struct UploadedFile {
  std::string name;  // for messages; the extensions .csv and .bin select a format
  std::string bytes;
};

// Selects the target to read from the files.
struct DecodeOptions {
  std::string target;            // CSV column by name, or by number from 0 without a header; "": the last column
  bool float32_targets = false;  // targets are numbers to predict, else classes
};

struct DecodedDataset {
  bool is_uint8 = false;             // else float32
  std::vector<int64_t> input_shape;  // {1, 28, 28}, {3, 32, 32}, {13}
  int64_t channels = 1;              // parts of an input with a scale of their own: colours, features
  int64_t num_rows = 0;
  int64_t num_classes = 0;                                         // for labels: the largest + 1, or the format's own
  std::string inputs;                                              // [num_rows, input_shape...], row-major
  std::variant<std::vector<int32_t>, std::vector<float>> targets;  // [num_rows] labels or numbers
};

// INVALID_ARGUMENT says which file is wrong, why, and what is expected: unreadable content, a size of 0, counts that
// differ, a CSV without the target column, labels that are negative, not whole or over 65535, NaN or infinite inputs or
// targets (with the row, or line and column). RESOURCE_EXHAUSTED: the unpacked content is too large, see ReadNpz,
// ReadZarr and Gunzip, or there are too many channels (limits::kMaxChannels). Calls `admit` before taking memory that
// grows with the files, and returns its errors.
absl::StatusOr<DecodedDataset> DecodeDataset(const std::vector<UploadedFile>& files, const DecodeOptions& options = {},
                                             const AdmitBytes& admit = AdmitAll);

}  // namespace chainfleet
