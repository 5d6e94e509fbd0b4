// Reads and writes batches of CIFAR-10 (records of a label and 3 x 32 x 32 bytes) and CIFAR-100 (two labels).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

struct CifarImages {
  std::string pixels;           // [n, 3, 32, 32]
  std::vector<int32_t> labels;  // [n]; the fine labels of CIFAR-100
  int64_t num_classes = 0;      // 10 or 100
};

// Bytes of one record of CIFAR-10 and CIFAR-100.
inline constexpr int64_t kCifar10RecordBytes = 3073, kCifar100RecordBytes = 3074;

// Appends the records of a file. INVALID_ARGUMENT if the file is not a whole number of records of `record_bytes`, or
// for a label outside the classes (names the record).
absl::Status ReadCifar(const std::string& bytes, int64_t record_bytes, CifarImages* images);

// Returns records of CIFAR-10 that ReadCifar reads back as the same images. INVALID_ARGUMENT for no images, a label
// outside 0 to 9, or pixels that are not 3072 for each label. Also for the 100 classes of CIFAR-100: its records have a
// coarse label, too, which CifarImages lacks, and readers would mistake an invented label for a true one.
absl::StatusOr<std::string> WriteCifar(const CifarImages& images);

}  // namespace chainfleet
