// The safetensors format, read strictly: 8 bytes little-endian header length, a JSON header, then the tensors' bytes
// without holes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

enum class TensorType { kBool, kUint8, kInt32, kInt64, kFloat16, kBfloat16, kFloat32, kFloat64 };

int64_t ItemBytes(TensorType type);

// A named dense tensor, row-major, little-endian; `data` is borrowed.
struct TensorView {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<int64_t> shape;
  const char* data = nullptr;
  int64_t size_bytes = 0;  // product(shape) * ItemBytes(type)
};

struct Safetensors {
  std::vector<TensorView> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  const TensorView* Find(const std::string& name) const;  // null if absent
};

// Returns views into `bytes`, which must outlive the result. INVALID_ARGUMENT: header longer than `max_header_bytes` or
// than the file, bad UTF-8 or JSON, duplicate keys, unknown dtype, offsets with holes or overlaps, sizes that do not
// match the shape, bytes after the last tensor, metadata that are not strings.
absl::StatusOr<Safetensors> ParseSafetensors(const std::string& bytes, uint64_t max_header_bytes = 100'000'000);

// As ParseSafetensors, of a file of `size_bytes` that begins with `begin`, its header at least. Every `data` is null.
absl::StatusOr<Safetensors> ParseSafetensorsHeader(std::string_view begin, int64_t size_bytes,
                                                   uint64_t max_header_bytes);

// Returns the bytes of a file before the tensors' bytes; does not read `data`.
std::string SafetensorsHeader(const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata);

// Returns the whole file. Tensors are written in the given order; spaces pad the header to 8 bytes. REQUIRES: each
// size_bytes matches shape and type.
std::string WriteSafetensors(const std::vector<TensorView>& tensors,
                             const std::map<std::string, std::string>& metadata);

}  // namespace chainfleet
