// How full a disk is.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

struct DiskSpace {
  int64_t size_bytes = 0;
  int64_t free_bytes = 0;  // for this user
};

// Of the disk that holds `folder`. NOT_FOUND, INTERNAL.
absl::StatusOr<DiskSpace> DiskSpaceOf(const std::string& folder);

}  // namespace chainfleet
