// The binary batches of CIFAR-10 (records of a label and 3 x 32 x 32 bytes) and CIFAR-100 (a coarse and a fine label).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

struct CifarImages {
  std::string pixels;           // [n, 3, 32, 32]
  std::vector<int32_t> labels;  // [n]; of CIFAR-100 the fine ones
  int64_t num_classes = 0;      // 10 or 100
};

// Bytes of one record of CIFAR-10 and CIFAR-100.
inline constexpr int64_t kCifar10RecordBytes = 3073, kCifar100RecordBytes = 3074;

// Appends the records of a file. INVALID_ARGUMENT if it is no whole number of records of `record_bytes`, or for a label
// (with its record) outside the classes.
absl::Status ReadCifar(const std::string& bytes, int64_t record_bytes, CifarImages* images);

// Records of CIFAR-10, to which ReadCifar gives back the same images. INVALID_ARGUMENT for no image, a label outside
// 0 to 9, or pixels that are not 3072 a label; and for the 100 classes of CIFAR-100: each of its records has a coarse
// label, too, which CifarImages lacks, and one made up would look like a true one to whoever reads it.
absl::StatusOr<std::string> WriteCifar(const CifarImages& images);

}  // namespace chainfleet
