// Zarr version 2: arrays as chunks under keys, here the files of a folder, without compression.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/formats/array.h"
#include "core/formats/streamed_array.h"

namespace chainfleet {

using ZarrPut = std::function<absl::Status(const std::string& key, const std::string& content)>;

// Calls `put(key, content)` for each entry of the group that holds `arrays`: ".zgroup", also for the groups in their
// names, "NAME/.zarray", and chunks "NAME/0.0", "NAME/1.0", ... A chunk has at most `chunk_bytes`, or one item: whole
// rows of the first axis, or parts of a larger row; zeros pad the last chunk. For arrays with dimensions, also writes
// "NAME/.zattrs" with the dimension names for xarray, the group's ".zattrs" with the JSON object `attributes`, and
// ".zmetadata" with all of these. Stops at the first error of `put` or an array, and returns it. Arrays have at least
// one axis. Source: Zarr storage specification, version 2; xarray, "Zarr Encoding Specification".
absl::Status WriteZarr(const std::vector<StreamedArray>& arrays, const std::string& attributes, int64_t chunk_bytes,
                       const ZarrPut& put);

// Writes arrays by name, without dimensions.
absl::Status WriteZarr(const std::map<std::string, Array>& arrays, int64_t chunk_bytes, const ZarrPut& put);

}  // namespace chainfleet
