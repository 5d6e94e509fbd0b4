#include "client/cli/zarr_folder.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/output_file.h"
#include "core/base/file_system.h"
#include "core/base/limits.h"
#include "core/formats/zarr.h"
#include "core/formats/zip.h"

namespace chainfleet {
namespace {

constexpr int64_t kWrittenChunkBytes = 16 * limits::kMiB;

absl::Status CheckGroup(const std::string& folder, const std::vector<std::string>& keys) {
  const auto has = [&](const char* key) { return std::binary_search(keys.begin(), keys.end(), key); };
  if (has(".zgroup") || (has("x/.zarray") && has("y/.zarray"))) return absl::OkStatus();
  if (has("zarr.json")) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " is of Zarr version 3, which is not read: write it with zarr_format=2"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(folder, " is a folder without a Zarr group: expected .zgroup, or x/.zarray and y/.zarray"));
}

}  // namespace

ZarrGet KeysOf(const std::string& folder) {
  // The user's own files have no size limit.
  return [folder](const std::string& key, int64_t /*max_bytes*/) { return RealFileSystem()->Read(folder + "/" + key); };
}

absl::StatusOr<std::string> PackZarr(const std::string& folder) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> keys, RealFileSystem()->ListFiles(folder));
  CHAINFLEET_RETURN_IF_ERROR(CheckGroup(folder, keys));
  std::vector<std::pair<std::string, std::string>> members;
  int64_t bytes = 0;
  for (const std::string& key : keys) {
    if (key != ".zgroup" && !key.starts_with("x/") && !key.starts_with("y/")) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(std::string content, RealFileSystem()->Read(folder + "/" + key));
    bytes += static_cast<int64_t>(content.size());
    if (bytes > limits::kMaxDatasetUploadBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          folder, " is over the ", limits::kMaxDatasetUploadBytes / limits::kMiB, " MiB that one upload may hold"));
    }
    members.emplace_back(key, std::move(content));
  }
  return WriteZip(members);
}

ZarrPut PutInFolder(const std::string& folder) {
  return [folder](const std::string& key, const std::string& content) {
    const std::string file = folder + "/" + key;
    const absl::Status made = MakeOutputFolder(file.substr(0, file.rfind('/')));
    return made.ok() ? WriteOutputFile(file, content) : made;
  };
}

absl::Status WriteZarrFolder(const std::string& folder, const std::map<std::string, Array>& arrays) {
  return WriteZarr(arrays, kWrittenChunkBytes, PutInFolder(folder));
}

}  // namespace chainfleet
