#include "core/formats/zarr.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/formats/npy.h"

namespace chainfleet {
namespace {

using Put = std::function<absl::Status(const std::string& key, const std::string& content)>;

std::string Describe(const Array& array, int64_t rows_per_chunk) {
  std::vector<int64_t> chunk = array.shape;
  chunk.front() = rows_per_chunk;
  return absl::StrCat(
      "{\n  \"zarr_format\": 2,\n  \"shape\": [", absl::StrJoin(array.shape, ", "), "],\n  \"chunks\": [",
      absl::StrJoin(chunk, ", "), "],\n  \"dtype\": \"", DescrOf(array.type),
      "\",\n  \"compressor\": null,\n  \"fill_value\": 0,\n  \"order\": \"C\",\n  \"filters\": null\n}\n");
}

absl::Status WriteChunks(const std::string& name, const Array& array, int64_t rows_per_chunk, int64_t row_bytes,
                         const Put& put) {
  std::string later_axes;
  for (size_t axis = 1; axis < array.shape.size(); ++axis) later_axes += ".0";
  const auto chunk_size = static_cast<size_t>(rows_per_chunk * row_bytes);
  for (size_t chunk = 0; chunk * chunk_size < array.bytes.size(); ++chunk) {
    std::string content = array.bytes.substr(chunk * chunk_size, chunk_size);
    content.resize(chunk_size);
    CHAINFLEET_RETURN_IF_ERROR(put(absl::StrCat(name, "/", chunk, later_axes), content));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteZarr(const std::map<std::string, Array>& arrays, int64_t chunk_bytes, const Put& put) {
  CHAINFLEET_RETURN_IF_ERROR(put(".zgroup", "{\"zarr_format\": 2}\n"));
  for (const auto& [name, array] : arrays) {
    int64_t row_bytes = ItemBytes(array.type);
    for (size_t axis = 1; axis < array.shape.size(); ++axis) row_bytes *= array.shape[axis];
    const int64_t rows = std::clamp(chunk_bytes / std::max<int64_t>(row_bytes, 1), int64_t{1},
                                    std::max<int64_t>(array.shape.front(), 1));
    CHAINFLEET_RETURN_IF_ERROR(put(name + "/.zarray", Describe(array, rows)));
    CHAINFLEET_RETURN_IF_ERROR(WriteChunks(name, array, rows, row_bytes, put));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
