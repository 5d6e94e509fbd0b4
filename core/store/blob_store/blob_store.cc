#include "core/store/blob_store/blob_store.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace chainfleet {

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
