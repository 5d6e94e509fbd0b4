// A file that reserves disk space for a start on a full disk: a store that was interrupted during a write must write
// before it can be read.
#pragma once

#include <cstdint>
#include <string>

namespace chainfleet {

// Not thread-safe.
class DiskReserve {
 public:
  explicit DiskReserve(std::string path) : path_(std::move(path)) {}

  // Grows the file to its full size, as far as the disk permits. Space that a start has used stays missing until the
  // disk has room again. False if the file is too small.
  bool Fill() const;
  // Deletes the file and so frees its space.
  void Release() const;

 private:
  const std::string path_;
};

}  // namespace chainfleet
