// An array that is too large for memory: its writer reads the bytes in parts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/formats/array.h"

namespace chainfleet {

struct StreamedArray {
  std::string name;  // a "/" in the name makes a group
  ArrayType type = ArrayType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<std::string> dimensions;  // names of the axes, for formats that keep them; empty: none
  // Copies `count` bytes of the row-major, little-endian content, from byte `at` on, to `to`.
  std::function<absl::Status(int64_t at, char* to, int64_t count)> read;
  bool is_bool = false;  // uint8 whose values are 0 and 1, for formats that have truth values

  int64_t size_bytes() const {
    int64_t bytes = ItemBytes(type);
    for (const int64_t size : shape) bytes *= size;
    return bytes;
  }
};

// Streams an array in memory, and takes ownership of the array.
StreamedArray Streamed(std::string name, Array array, std::vector<std::string> dimensions = {});

}  // namespace chainfleet
