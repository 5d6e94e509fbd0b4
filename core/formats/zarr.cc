#include "core/formats/zarr.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/formats/npy.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;

// The chunks of an array: `chunk` is 1 on the axes before `axis`, rows of the array on `axis`, and whole on later axes.
struct Cut {
  std::vector<int64_t> chunk;
  size_t axis = 0;
  int64_t row_bytes = 0;  // bytes of one index of `axis`
};

Cut CutOf(const StreamedArray& array, int64_t chunk_bytes) {
  Cut cut{.chunk = array.shape, .row_bytes = ItemBytes(array.type)};
  for (size_t a = 1; a < array.shape.size(); ++a) cut.row_bytes *= array.shape[a];
  while (cut.row_bytes > chunk_bytes && cut.axis + 1 < array.shape.size()) {
    cut.chunk[cut.axis++] = 1;
    cut.row_bytes /= array.shape[cut.axis];
  }
  int64_t& rows = cut.chunk[cut.axis];
  rows = std::clamp(chunk_bytes / std::max<int64_t>(cut.row_bytes, 1), int64_t{1}, std::max<int64_t>(rows, 1));
  return cut;
}

Json Describe(const StreamedArray& array, const Cut& cut) {
  const bool is_float = array.type == ArrayType::kFloat32 || array.type == ArrayType::kFloat64;
  const Json missing = is_float ? Json("NaN") : Json();  // xarray would read a number as "missing"
  return {{"zarr_format", 2},     {"shape", array.shape},
          {"chunks", cut.chunk},  {"dtype", array.is_bool ? "|b1" : DescrOf(array.type)},
          {"compressor", Json()}, {"fill_value", array.dimensions.empty() ? Json(0) : missing},
          {"order", "C"},         {"filters", Json()}};
}

absl::Status WriteChunks(const StreamedArray& array, const Cut& cut, const ZarrPut& put) {
  const int64_t rows = array.shape[cut.axis], rows_per_chunk = cut.chunk[cut.axis];
  std::string later_axes;
  for (size_t a = cut.axis + 1; a < array.shape.size(); ++a) later_axes += ".0";
  std::vector<int64_t> before(cut.axis);  // indices on the axes before `axis`
  const int64_t row_bytes = cut.row_bytes, size = array.size_bytes();
  for (int64_t at = 0; at < size; at += rows * row_bytes) {
    for (int64_t row = 0; row < rows; row += rows_per_chunk) {
      std::string content(static_cast<size_t>(rows_per_chunk * row_bytes), '\0');
      CHAINFLEET_RETURN_IF_ERROR(
          array.read(at + row * row_bytes, content.data(), std::min(rows_per_chunk, rows - row) * row_bytes));
      const std::string place = absl::StrCat(absl::StrJoin(before, "."), before.empty() ? "" : ".");
      CHAINFLEET_RETURN_IF_ERROR(put(absl::StrCat(array.name, "/", place, row / rows_per_chunk, later_axes), content));
    }
    for (size_t a = cut.axis; a-- > 0 && ++before[a] == array.shape[a];) before[a] = 0;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteZarr(const std::vector<StreamedArray>& arrays, const std::string& attributes, int64_t chunk_bytes,
                       const ZarrPut& put) {
  Json metadata = Json::object();
  const auto describe = [&](const std::string& key, Json value) {
    const std::string content = value.dump() + "\n";
    metadata[key] = std::move(value);
    return put(key, content);
  };
  std::set<std::string> groups = {""};
  for (const StreamedArray& array : arrays) {
    for (size_t slash = array.name.find('/'); slash != std::string::npos; slash = array.name.find('/', slash + 1)) {
      groups.insert(array.name.substr(0, slash + 1));
    }
  }
  for (const std::string& group : groups) CHAINFLEET_RETURN_IF_ERROR(describe(group + ".zgroup", {{"zarr_format", 2}}));
  for (const StreamedArray& array : arrays) {
    const Cut cut = CutOf(array, chunk_bytes);
    CHAINFLEET_RETURN_IF_ERROR(describe(array.name + "/.zarray", Describe(array, cut)));
    if (!array.dimensions.empty()) {
      CHAINFLEET_RETURN_IF_ERROR(describe(array.name + "/.zattrs", {{"_ARRAY_DIMENSIONS", array.dimensions}}));
    }
    CHAINFLEET_RETURN_IF_ERROR(WriteChunks(array, cut, put));
  }
  if (attributes.empty()) return absl::OkStatus();
  CHAINFLEET_RETURN_IF_ERROR(describe(".zattrs", Json::parse(attributes)));
  const Json consolidated = {{"zarr_consolidated_format", 1}, {"metadata", metadata}};
  return put(".zmetadata", consolidated.dump() + "\n");
}

absl::Status WriteZarr(const std::map<std::string, Array>& arrays, int64_t chunk_bytes, const ZarrPut& put) {
  std::vector<StreamedArray> streamed;
  for (const auto& [name, array] : arrays) streamed.push_back(Streamed(name, array));
  return WriteZarr(streamed, "", chunk_bytes, put);
}

}  // namespace chainfleet
