// Bytes in memory or in a file, for readers that take them a part at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.h"

namespace chainfleet {

class ByteSource {
 public:
  // Bytes in memory, which outlive the source.
  template <std::convertible_to<std::string_view> Bytes>
  ByteSource(const Bytes& in_memory)  // NOLINT(google-explicit-constructor)
      : bytes_(in_memory), size_bytes_(static_cast<int64_t>(bytes_.size())) {}
  // The first `size_bytes` bytes of the file at `path`, which outlives the source.
  static ByteSource InFile(std::string path, int64_t size_bytes) { return {std::move(path), size_bytes}; }

  int64_t size_bytes() const { return size_bytes_; }
  // Empty for bytes in memory.
  const std::string& path() const { return path_; }
  // The bytes in memory; empty for those of a file.
  std::string_view in_memory() const { return bytes_; }

  // Returns bytes [offset, offset + length), clipped at the end. Those of a file are read into `buffer`, to which the
  // result then refers. DATA_LOSS if the file is shorter; errors of FileSystem.
  absl::StatusOr<std::string_view> Range(int64_t offset, int64_t length, std::string* buffer) const;
  // Calls `take` for each part of `part_bytes`, in order; the last may be shorter. Returns its first error, or Range's.
  absl::Status ForEachPart(int64_t part_bytes, const std::function<absl::Status(std::string_view part)>& take) const;
  // Returns a copy of all bytes.
  absl::StatusOr<std::string> ReadAll() const;

 private:
  ByteSource(std::string path, int64_t size_bytes) : path_(std::move(path)), size_bytes_(size_bytes) {}

  std::string path_;
  std::string_view bytes_;
  int64_t size_bytes_ = 0;
};

}  // namespace chainfleet
