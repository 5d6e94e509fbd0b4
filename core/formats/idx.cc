#include "core/formats/idx.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

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

absl::StatusOr<Array> ReadIdx(const std::string& bytes) {
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
  array.bytes = bytes.substr(header);
  return array;
}

}  // namespace chainfleet
