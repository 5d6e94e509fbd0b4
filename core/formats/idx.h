// The IDX format of the MNIST family: big-endian magic 0x0000 08 dd (unsigned bytes, dd dimensions), sizes, data.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/formats/array.h"

namespace chainfleet {

// Returns true if `bytes` starts like an IDX file of unsigned bytes.
bool IsIdx(const std::string& bytes);

// Returns the array of an IDX file (not gzipped). INVALID_ARGUMENT for another magic or item type, or if the file's
// size differs from its header. The array takes over the memory of `bytes`.
absl::StatusOr<Array> ReadIdx(std::string bytes);

// Returns an IDX file, not gzipped, of a uint8 array with 1 to 4 dimensions. INVALID_ARGUMENT for another type or
// number of dimensions, or a size that is 0 or has more than 32 bits.
absl::StatusOr<std::string> WriteIdx(const Array& array);

}  // namespace chainfleet
