#include "core/formats/npy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <regex>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/utf8.h"

namespace chainfleet {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
// Plain arrays need about 120 bytes. The limit bounds the recursion of std::regex.
constexpr uint32_t kMaxHeaderBytes = 4096;

absl::StatusOr<std::vector<int64_t>> ParseShape(const std::string& text) {
  std::vector<int64_t> shape;
  for (const std::string& item : std::vector<std::string>(absl::StrSplit(text, ','))) {
    if (item.find_first_not_of(' ') == std::string::npos) continue;  // "(3,)" ends with an empty item
    int64_t size = 0;
    if (!absl::SimpleAtoi(item, &size) || size < 0) {
      return absl::InvalidArgumentError(absl::StrCat(".npy shape has \"", item, "\", expected a size"));
    }
    shape.push_back(size);
  }
  return shape;
}

// The header is a Python dict literal that NumPy writes in one fixed form; keys may come in any order.
absl::StatusOr<Array> ParseHeader(const std::string& header) {
  std::smatch descr, order, shape;
  if (!std::regex_search(header, descr, std::regex(R"('descr': *'([^']*)')")) ||
      !std::regex_search(header, order, std::regex(R"('fortran_order': *(True|False))")) ||
      !std::regex_search(header, shape, std::regex(R"('shape': *\(([0-9, ]*)\))"))) {
    return absl::InvalidArgumentError(
        ".npy header lacks a plain descr, fortran_order or shape (structured types are not supported)");
  }
  if (order[1] == "True")
    return absl::InvalidArgumentError(".npy array is in Fortran order: save numpy.ascontiguousarray(x)");
  const auto type = TypeOf(descr[1]);
  if (!type) {
    return absl::InvalidArgumentError(
        absl::StrCat(".npy dtype ", descr[1].str(),
                     " is not supported: use uint8, int32, int64, float32 or float64, little-endian"));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ParseShape(shape[1]));
  return Array{.type = *type, .shape = std::move(sizes), .bytes = ""};
}

std::string HeaderOf(const std::string& descr, const std::vector<int64_t>& shape) {
  std::string header = absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
                                    absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  constexpr size_t kPrefix = 10;
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header += '\n';
  const uint16_t size = static_cast<uint16_t>(header.size());
  std::string bytes(kMagic, kMagicSize);
  bytes += std::string("\x01\x00", 2);
  bytes.append(reinterpret_cast<const char*>(&size), 2);
  return bytes + header;
}

}  // namespace

absl::StatusOr<Array> ReadNpy(std::string bytes) {
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic, kMagicSize) != 0)
    return absl::InvalidArgumentError("not a .npy file");
  const int version = bytes[6];
  if (version < 1 || version > 3)
    return absl::InvalidArgumentError(absl::StrCat(".npy version ", version, " is not supported"));
  const size_t length_bytes = version == 1 ? 2 : 4, prefix = 8 + length_bytes;
  uint32_t header_size = 0;
  if (bytes.size() < prefix) return absl::InvalidArgumentError(".npy header is cut");
  std::memcpy(&header_size, bytes.data() + 8, length_bytes);
  if (header_size > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(".npy header has ", header_size, " bytes, at most ", kMaxHeaderBytes, " are read"));
  }
  if (header_size > bytes.size() - prefix) return absl::InvalidArgumentError(".npy header is cut");
  CHAINFLEET_ASSIGN_OR_RETURN(Array array, ParseHeader(bytes.substr(prefix, header_size)));
  const int64_t present = static_cast<int64_t>(bytes.size() - prefix - header_size);
  int64_t wanted = ItemBytes(array.type);
  for (const int64_t size : array.shape) {
    if (__builtin_mul_overflow(wanted, size, &wanted)) return absl::InvalidArgumentError(".npy shape overflows");
  }
  if (wanted != present) {
    return absl::InvalidArgumentError(
        absl::StrCat(".npy header promises ", wanted, " bytes of data, the file has ", present));
  }
  array.bytes = std::move(bytes.erase(0, prefix + header_size));
  return array;
}

std::optional<ArrayType> TypeOf(const std::string& descr) {
  if (descr == "|u1" || descr == "<u1" || descr == "u1") return ArrayType::kUint8;
  if (descr == "<i4") return ArrayType::kInt32;
  if (descr == "<i8") return ArrayType::kInt64;
  if (descr == "<f4") return ArrayType::kFloat32;
  if (descr == "<f8") return ArrayType::kFloat64;
  return std::nullopt;
}

const char* DescrOf(ArrayType type) {
  switch (type) {
    case ArrayType::kUint8:
      return "|u1";
    case ArrayType::kInt32:
      return "<i4";
    case ArrayType::kInt64:
      return "<i8";
    case ArrayType::kFloat32:
      return "<f4";
    case ArrayType::kFloat64:
      return "<f8";
  }
  return "";
}

std::string NpyHeader(ArrayType type, const std::vector<int64_t>& shape) { return HeaderOf(DescrOf(type), shape); }

std::string WriteNpy(const Array& array) { return NpyHeader(array.type, array.shape) + array.bytes; }

std::string WriteNpyOfTexts(const std::vector<std::string>& texts) {
  std::vector<std::u32string> decoded;
  size_t width = 1;
  for (const std::string_view text : texts) {
    std::u32string& codes = decoded.emplace_back();
    for (size_t at = 0; at < text.size();) {
      const auto [code, bytes] = FirstCharacter(text.substr(at));
      codes.push_back(code);
      at += bytes;
    }
    width = std::max(width, codes.size());
  }
  std::string npy = HeaderOf(absl::StrCat("<U", width), {std::ssize(texts)});
  for (std::u32string& codes : decoded) {
    codes.resize(width);
    npy.append(reinterpret_cast<const char*>(codes.data()), width * sizeof(char32_t));
  }
  return npy;
}

}  // namespace chainfleet
