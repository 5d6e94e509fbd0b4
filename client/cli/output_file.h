// Writes files for users.
#pragma once

#include <functional>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Writes the whole file or nothing: writes it next to `path` and moves it there, replacing an existing file. A device
// or pipe is written in place. FAILED_PRECONDITION or RESOURCE_EXHAUSTED, naming the path.
absl::Status WriteOutputFile(const std::string& path, const std::string& bytes);

// As above, for a file that `write` creates at the path that it gets; errors of `write`.
absl::Status WriteOutputFile(const std::string& path,
                             const std::function<absl::Status(const std::string& path)>& write);

// Returns the folder for files that accompany an output: its own, or the temporary folder if the output is a device.
std::string FolderOfOutput(const std::string& output);

// Creates the folder and those above it; OK if it exists. FAILED_PRECONDITION, naming the path.
absl::Status MakeOutputFolder(const std::string& path);

// As above, but FAILED_PRECONDITION if the folder holds anything, because old and new files would be read together.
absl::Status MakeEmptyOutputFolder(const std::string& path);

}  // namespace chainfleet
