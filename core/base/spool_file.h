// A file without a name, for what is too large for memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/byte_source.h"
#include "core/base/status.h"

namespace chainfleet {

// Copies share the file, which vanishes with the last of them, and also if the process dies.
class SpoolFile {
 public:
  // FAILED_PRECONDITION, naming the folder.
  static absl::StatusOr<SpoolFile> Make(const std::string& folder);

  // Transfers `count` bytes from byte `at` on. RESOURCE_EXHAUSTED: the disk is full. FAILED_PRECONDITION.
  absl::Status Write(int64_t at, const void* data, int64_t count) const;
  absl::Status Read(int64_t at, void* to, int64_t count) const;

  // Returns the first `size_bytes` bytes; they live as long as the file.
  ByteSource Content(int64_t size_bytes) const;

 private:
  struct OpenFile;
  explicit SpoolFile(std::shared_ptr<const OpenFile> file) : file_(std::move(file)) {}
  std::shared_ptr<const OpenFile> file_;
};

}  // namespace chainfleet
