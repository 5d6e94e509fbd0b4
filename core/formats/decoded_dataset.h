// A data set decoded from uploaded files, whatever their format: what the server checks once and stores as canonical
// shards.
//
// Formats are told by content: IDX images + labels (.gz or plain), CIFAR-10 and CIFAR-100 binary batches, .npz or
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
  std::string name;  // for messages, and .csv or .bin decide by extension
  std::string bytes;
};

// The target to read from the files.
struct DecodeOptions {
  std::string target;            // column of a CSV, by its name or, without a header, its number from 0; "": the last
  bool float32_targets = false;  // numbers to predict, else classes
};

struct DecodedDataset {
  bool is_uint8 = false;             // else float32
  std::vector<int64_t> input_shape;  // {1, 28, 28}, {3, 32, 32}, {13}
  int64_t channels = 1;              // parts of an input with a scale of their own: colours; features, as columns
  int64_t num_rows = 0;
  int64_t num_classes = 0;                                         // of labels: the largest + 1, or the format's own
  std::string inputs;                                              // [num_rows, input_shape...], row-major
  std::variant<std::vector<int32_t>, std::vector<float>> targets;  // [num_rows] labels or numbers
};

// INVALID_ARGUMENT says which file, what is wrong, and what was wanted: unreadable content, a size of 0, counts that
// differ, a CSV without the target column, labels that are negative, not whole or over 65535, NaN or infinite inputs or
// targets (with the row, or line and column). RESOURCE_EXHAUSTED: what is packed is too large, see ReadNpz, ReadZarr
// and Gunzip, and too many channels (limits::kMaxChannels). `admit` is asked for all memory that grows with the files,
// before it is taken; its errors are returned.
absl::StatusOr<DecodedDataset> DecodeDataset(const std::vector<UploadedFile>& files, const DecodeOptions& options = {},
                                             const AdmitBytes& admit = AdmitAll);

}  // namespace chainfleet
