// A dense array, as .npy, .npz and IDX files hold it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chainfleet {

enum class ArrayType { kUint8, kInt32, kInt64, kFloat32, kFloat64 };

inline int64_t ItemBytes(ArrayType type) {
  return type == ArrayType::kUint8 ? 1 : type == ArrayType::kInt32 || type == ArrayType::kFloat32 ? 4 : 8;
}

// Row-major, little-endian; bytes.size() == product(shape) * ItemBytes(type).
struct Array {
  ArrayType type = ArrayType::kFloat32;
  std::vector<int64_t> shape;
  std::string bytes;
};

}  // namespace chainfleet
