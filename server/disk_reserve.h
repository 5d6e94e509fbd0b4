// A file that holds a little room on a disk for a start on a full one: a store that was cut off amid a write must write
// before it can be read.
#pragma once

#include <cstdint>
#include <string>

namespace chainfleet {

// Not thread-safe.
class DiskReserve {
 public:
  explicit DiskReserve(std::string path) : path_(std::move(path)) {}

  // Makes the file as large as it should be, or as the disk permits: what a start used is missing from it until there
  // is room again. False if it is smaller than it should be.
  bool Fill() const;
  // Gives the room back.
  void Release() const;

 private:
  const std::string path_;
};

}  // namespace chainfleet
