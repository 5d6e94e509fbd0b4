// Zarr version 2: arrays as chunks under keys, here the files of a folder, without compression.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/base/status.h"
#include "core/formats/array.h"

namespace chainfleet {

// Calls `put(key, content)` for each entry of the group that holds `arrays` by name: ".zgroup", "NAME/.zarray" and
// chunks "NAME/0.0", "NAME/1.0", ... of whole rows (the first axis), of at most `chunk_bytes` or one row; the last is
// padded with zeros. Stops at put's first error and returns it. Names have no '/'; arrays have at least one axis.
// Source: Zarr storage specification, version 2.
absl::Status WriteZarr(const std::map<std::string, Array>& arrays, int64_t chunk_bytes,
                       const std::function<absl::Status(const std::string& key, const std::string& content)>& put);

}  // namespace chainfleet
