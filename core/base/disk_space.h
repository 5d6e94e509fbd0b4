// The size and free space of a disk.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

struct DiskSpace {
  int64_t size_bytes = 0;
  int64_t free_bytes = 0;  // available to this user
};

// Returns the space on the disk that holds `folder`. Errors: NOT_FOUND, INTERNAL.
absl::StatusOr<DiskSpace> DiskSpaceOf(const std::string& folder);

}  // namespace chainfleet
