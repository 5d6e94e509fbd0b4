#include "core/formats/idx.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace chainfleet {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;

int64_t BigEndian32(const std::string& bytes, size_t offset) {
  int64_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  return value;
}

}  // namespace

bool IsIdx(const std::string& bytes) {
  return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 && static_cast<uint8_t>(bytes[2]) == kUnsignedByte &&
         bytes[3] >= 1 && bytes[3] <= 4;
}

absl::StatusOr<Array> ReadIdx(std::string bytes) {
  if (!IsIdx(bytes)) return absl::InvalidArgumentError("not an IDX file of unsigned bytes with 1 to 4 dimensions");
  const size_t dimensions = static_cast<size_t>(bytes[3]), header = 4 + 4 * dimensions;
  if (bytes.size() < header) return absl::InvalidArgumentError("IDX header is cut");
  Array array{.type = ArrayType::kUint8};
  // Four 32-bit sizes overflow 64 bits: stop multiplying once the file could not hold the product.
  int64_t items = 1;
  const int64_t present = static_cast<int64_t>(bytes.size() - header);
  for (size_t d = 0; d < dimensions; ++d) {
    array.shape.push_back(BigEndian32(bytes, 4 + 4 * d));
    items = items > present ? items : items * array.shape.back();
  }
  if (items != present) {
    return absl::InvalidArgumentError(
        absl::StrCat("IDX header promises ", items, " bytes of data, the file has ", present));
  }
  array.bytes = std::move(bytes.erase(0, header));
  return array;
}

absl::StatusOr<std::string> WriteIdx(const Array& array) {
  if (array.type != ArrayType::kUint8)
    return absl::InvalidArgumentError("only IDX files of unsigned bytes can be written");
  if (array.shape.empty() || array.shape.size() > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("IDX files have 1 to 4 dimensions, the array has ", array.shape.size()));
  }
  std::string bytes = {0, 0, static_cast<char>(kUnsignedByte), static_cast<char>(array.shape.size())};
  bytes.reserve(4 + 4 * array.shape.size() + array.bytes.size());
  for (const int64_t size : array.shape) {
    if (size < 1 || size > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("sizes in IDX files are 1 to 4294967295, the array is [",
                                                     absl::StrJoin(array.shape, ", "), "]"));
    }
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xff);
  }
  bytes += array.bytes;
  return bytes;
}

}  // namespace chainfleet
