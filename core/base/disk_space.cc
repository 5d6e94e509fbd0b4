#include "core/base/disk_space.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace chainfleet {

absl::StatusOr<DiskSpace> DiskSpaceOf(const std::string& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error == std::errc::no_such_file_or_directory) return absl::NotFoundError(folder);
  if (error) return absl::InternalError(absl::StrCat(folder, ": ", error.message()));
  return DiskSpace{static_cast<int64_t>(space.capacity), static_cast<int64_t>(space.available)};
}

}  // namespace chainfleet
