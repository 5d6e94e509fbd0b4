// The members of a zip archive in memory, by libzip.
#pragma once

#include <functional>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Calls `take(name, content)` for each member, in the archive's order, until it returns an error, which is then
// returned. INVALID_ARGUMENT if `bytes` are no archive (`kind` names what was expected: ".npz") or a member does not
// match its CRC, RESOURCE_EXHAUSTED for one over limits::kMaxBlobBytes.
absl::Status ForEachZipMember(const std::string& bytes, const std::string& kind,
                              const std::function<absl::Status(std::string name, const std::string& content)>& take);

}  // namespace chainfleet
