#include "core/base/byte_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"

namespace chainfleet {

absl::StatusOr<std::string_view> ByteSource::Range(int64_t offset, int64_t length, std::string* buffer) const {
  length = std::clamp<int64_t>(size_bytes_ - offset, 0, length);
  if (path_.empty()) return length == 0 ? std::string_view() : bytes_.substr(offset, length);
  CHAINFLEET_ASSIGN_OR_RETURN(*buffer, RealFileSystem()->ReadRange(path_, offset, length));
  if (static_cast<int64_t>(buffer->size()) == length) return *buffer;
  return absl::DataLossError(absl::StrCat(path_, " ends before byte ", offset + length));
}

absl::Status ByteSource::ForEachPart(int64_t part_bytes,
                                     const std::function<absl::Status(std::string_view part)>& take) const {
  std::string buffer;
  for (int64_t offset = 0; offset < size_bytes_; offset += part_bytes) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string_view part, Range(offset, part_bytes, &buffer));
    CHAINFLEET_RETURN_IF_ERROR(take(part));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ByteSource::ReadAll() const {
  std::string buffer;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string_view all, Range(0, size_bytes_, &buffer));
  return path_.empty() ? std::string(all) : buffer;
}

}  // namespace chainfleet
