// A file without a name, for arrays that are too large for memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

class SpoolFile {
 public:
  // Makes the file in the folder of `beside`, the output. FAILED_PRECONDITION, naming the folder.
  static absl::StatusOr<SpoolFile> Make(const std::string& beside);

  // Transfers `count` bytes from byte `at` on. RESOURCE_EXHAUSTED: the disk is full. FAILED_PRECONDITION.
  absl::Status Write(int64_t at, const void* data, int64_t count) const;
  absl::Status Read(int64_t at, void* to, int64_t count) const;

 private:
  explicit SpoolFile(int file);
  std::shared_ptr<const int> file_;  // shared by the arrays that read it
};

}  // namespace chainfleet
