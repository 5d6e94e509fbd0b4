// Checks a user's TorchScript file in a separate process before the worker uses it. Code that exploits the reader finds
// no token in that process and cannot open files.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The only argument of this program in that process.
inline constexpr char kCheckModule[] = "--check-module";

// Runs this program as that process on `bytes`. Takes about a second, at most a minute. INVALID_ARGUMENT as for
// CheckScript, and if the process dies or takes too long. RESOURCE_EXHAUSTED: the process cannot be created.
// Thread-safe.
absl::Status CheckModuleApart(const std::string& bytes);

// The main function of that process: reads the file from standard input, drops all rights that it can, checks the file,
// and writes the error to standard output. Returns the exit status, 0 if the file is valid.
int CheckModuleOfInput();

}  // namespace chainfleet
