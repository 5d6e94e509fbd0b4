// The IDX format of the MNIST family: big-endian magic 0x0000 08 dd (unsigned bytes, dd dimensions), sizes, data.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/formats/array.h"

namespace chainfleet {

// True if `bytes` starts like an IDX file of unsigned bytes.
bool IsIdx(const std::string& bytes);

// The array of an IDX file (not gzipped). INVALID_ARGUMENT for another magic or item type, or if the file's size is not
// exactly what its header says.
absl::StatusOr<Array> ReadIdx(const std::string& bytes);

}  // namespace chainfleet
