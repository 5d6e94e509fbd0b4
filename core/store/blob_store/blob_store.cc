#include "core/store/blob_store/blob_store.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file_system.h"
#include "core/base/log.h"

namespace chainfleet {

absl::Status BlobStore::ListPages(const std::string& prefix, const PageVisitor& visit) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(prefix));
  for (auto begin = names.begin(); begin != names.end();) {
    const auto end = begin + std::min(names.end() - begin, static_cast<std::ptrdiff_t>(kListPage));
    CHAINFLEET_RETURN_IF_ERROR(visit({begin, end}));
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status PutContentAddressed(BlobStore* blobs, const std::string& name, const ByteSource& content) {
  absl::Status status = blobs->Put(name, content);
  // STORE_FAULT: the present object may be unreadable, for example because of a bad sector.
  if (!absl::IsAlreadyExists(status) && !absl::IsInternal(status) && ReasonOf(status) != kStoreFault) return status;
  Log(LogLevel::kWarning, "replacing a damaged object", {{"object", name}, {"error", status.ToString()}});
  return blobs->Replace(name, content);
}

absl::Status CompareObject(const BlobStore& blobs, const std::string& name, const ByteSource& content,
                           int64_t part_bytes) {
  const auto differs = [&] {
    return absl::AlreadyExistsError(absl::StrCat("object ", name, " exists with other bytes"));
  };
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t size, blobs.SizeBytes(name));
  if (size != content.size_bytes()) return differs();
  int64_t offset = 0;
  return content.ForEachPart(part_bytes, [&](std::string_view part) -> absl::Status {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string present, blobs.GetRange(name, offset, part_bytes));
    offset += part_bytes;
    return present == part ? absl::OkStatus() : differs();
  });
}

absl::Status CheckBlobName(const std::string& name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; };
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(name, '/'))) {
    if (part.empty() || part[0] == '.' || !std::all_of(part.begin(), part.end(), allowed)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is no name of an object"));
    }
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
