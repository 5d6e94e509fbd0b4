// Files that verbs write for their users.
#pragma once

#include <functional>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The whole file or none: written beside `path` and moved there, replacing what was there. A device or pipe is written
// in place. FAILED_PRECONDITION or RESOURCE_EXHAUSTED naming the path.
absl::Status WriteOutputFile(const std::string& path, const std::string& bytes);

// The same from `write`, which makes the file at the path that it is given; its errors.
absl::Status WriteOutputFile(const std::string& path,
                             const std::function<absl::Status(const std::string& path)>& write);

// With those above it; fine if it is there. FAILED_PRECONDITION naming the path.
absl::Status MakeOutputFolder(const std::string& path);

}  // namespace chainfleet
