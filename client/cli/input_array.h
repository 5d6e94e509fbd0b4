// Reads the inputs of predictions from users' files.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/formats/array.h"

namespace chainfleet {

// uint8 or float32, [rows, input shape...] with at least one row: a .npy file or IDX images (which get one channel),
// possibly gzipped; or a Zarr array, or the array x of a Zarr group, as a folder or in a zip archive. Errors name the
// path: INVALID_ARGUMENT for other types, shapes or formats; errors of the readers and of FileSystem.
absl::StatusOr<Array> ReadInputArray(const std::string& path);

}  // namespace chainfleet
