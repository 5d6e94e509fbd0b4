#include "core/formats/zarr_metadata.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/formats/npy.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 16;    // nlohmann-json copies and prints by recursion
constexpr size_t kMaxAxes = 32;  // NumPy's limit

// Returns a value for a message, cut, because the file may hold any text.
std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr size_t kShown = 80;
  if (text.size() <= kShown) return text;
  text.resize(kShown);
  return text + "...";
}

absl::Status Unsupported(const char* field, const Json& value, const char* supported) {
  return absl::InvalidArgumentError(absl::StrCat(field, " ", Shown(value), " is not supported: ", supported));
}

// Returns null if the field is missing.
const Json& Field(const Json& description, const char* name) {
  static const Json* const kNull = new Json();
  const auto found = description.find(name);
  return found == description.end() ? *kNull : *found;
}

absl::StatusOr<std::vector<int64_t>> SizesOf(const Json& description, const char* field) {
  const Json& list = Field(description, field);
  if (!list.is_array()) return absl::InvalidArgumentError(absl::StrCat(field, " is no list of sizes"));
  if (list.size() > kMaxAxes) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " has ", list.size(), " axes, at most ", kMaxAxes, " are read"));
  }
  std::vector<int64_t> sizes;
  for (const Json& size : list) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " has ", Shown(size), ": expected a whole number from 0 to 2^63 - 1"));
    }
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

template <typename T>
std::string BytesOf(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
std::optional<std::string> WholeNumber(const Json& value) {
  const bool fits =
      value.is_number_unsigned()
          ? value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max())
          : value.is_number_integer() && value.get<int64_t>() >= static_cast<int64_t>(std::numeric_limits<T>::min());
  if (!fits) return std::nullopt;
  return BytesOf(static_cast<T>(value.get<int64_t>()));
}

template <typename T>
std::optional<std::string> RealNumber(const Json& value) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (value == "NaN") return BytesOf(std::numeric_limits<T>::quiet_NaN());
  if (value == "Infinity") return BytesOf(kInfinity);
  if (value == "-Infinity") return BytesOf(-kInfinity);
  if (!value.is_number() || std::abs(value.get<double>()) > std::numeric_limits<T>::max()) return std::nullopt;
  return BytesOf(static_cast<T>(value.get<double>()));
}

std::optional<std::string> FillOf(ArrayType type, const Json& value) {
  if (value.is_null()) return std::string(static_cast<size_t>(ItemBytes(type)), '\0');
  switch (type) {
    case ArrayType::kUint8:
      return WholeNumber<uint8_t>(value);
    case ArrayType::kInt32:
      return WholeNumber<int32_t>(value);
    case ArrayType::kInt64:
      return WholeNumber<int64_t>(value);
    case ArrayType::kFloat32:
      return RealNumber<float>(value);
    case ArrayType::kFloat64:
      return RealNumber<double>(value);
  }
  return std::nullopt;
}

absl::Status SetItems(const Json& description, ZarrMetadata* metadata) {
  const Json& dtype = Field(description, "dtype");
  const auto type = dtype.is_string() ? TypeOf(dtype.get<std::string>()) : std::nullopt;
  if (!type) {
    return Unsupported("dtype", dtype, "write uint8, int32, int64, float32 or float64, little-endian (<f4)");
  }
  const Json& fill = Field(description, "fill_value");
  auto item = FillOf(*type, fill);
  if (!item) {
    return absl::InvalidArgumentError(absl::StrCat("fill_value ", Shown(fill), " is no value of dtype ", Shown(dtype)));
  }
  metadata->type = *type;
  metadata->fill = *std::move(item);
  return absl::OkStatus();
}

absl::Status SetChunks(const Json& description, ZarrMetadata* metadata) {
  CHAINFLEET_ASSIGN_OR_RETURN(metadata->shape, SizesOf(description, "shape"));
  CHAINFLEET_ASSIGN_OR_RETURN(metadata->chunks, SizesOf(description, "chunks"));
  if (metadata->shape.size() != metadata->chunks.size()) {
    return absl::InvalidArgumentError(absl::StrCat("shape has ", metadata->shape.size(), " axes, chunks have ",
                                                   metadata->chunks.size(), ": the numbers must be equal"));
  }
  for (const int64_t size : metadata->chunks) {
    if (size == 0) return absl::InvalidArgumentError("chunks has 0: the size along each axis must be at least 1");
  }
  const Json& order = Field(description, "order");
  if (order != "C" && order != "F") return Unsupported("order", order, "\"C\" and \"F\" are");
  metadata->fortran_order = order == "F";
  const Json separator = description.value("dimension_separator", Json("."));
  if (separator != "." && separator != "/") return Unsupported("dimension_separator", separator, "\".\" and \"/\" are");
  metadata->separator = separator.get<std::string>();
  return absl::OkStatus();
}

absl::Status SetCodecs(const Json& description, ZarrMetadata* metadata) {
  const Json& filters = Field(description, "filters");
  if (!filters.is_null() && !(filters.is_array() && filters.empty()))
    return Unsupported("filters", filters, "write the array without filters");
  const Json& compressor = Field(description, "compressor");
  if (compressor.is_null()) return absl::OkStatus();
  const Json id = compressor.is_object() ? Field(compressor, "id") : Json();
  const auto known = id.is_string() ? ZarrCompressorOf(id.get<std::string>()) : std::nullopt;
  if (!known) return Unsupported("compressor", compressor, "write the array with blosc, zstd, zlib, gzip or null");
  metadata->compressor = *known;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ZarrMetadata> ParseZarrMetadata(const std::string& json) {
  if (static_cast<int64_t>(json.size()) > kMaxZarrMetadataBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", json.size(), " bytes, at most ", kMaxZarrMetadataBytes, " are read"));
  }
  bool too_deep = false;
  const auto look = [&](int depth, Json::parse_event_t, const Json&) {
    too_deep |= depth > kMaxDepth;
    return true;
  };
  const Json description = Json::parse(json, look, /*allow_exceptions=*/false);
  if (too_deep) return absl::InvalidArgumentError(absl::StrCat("is nested more than ", kMaxDepth, " deep"));
  if (!description.is_object()) return absl::InvalidArgumentError("is no JSON object");
  const Json& version = Field(description, "zarr_format");
  if (version != 2) return Unsupported("zarr_format", version, "write the array with zarr_format 2");
  ZarrMetadata metadata;
  CHAINFLEET_RETURN_IF_ERROR(SetItems(description, &metadata));
  CHAINFLEET_RETURN_IF_ERROR(SetChunks(description, &metadata));
  CHAINFLEET_RETURN_IF_ERROR(SetCodecs(description, &metadata));
  return metadata;
}

}  // namespace chainfleet
