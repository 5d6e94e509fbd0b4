// A user's TorchScript file is looked at in a process of its own before the worker touches it: whoever finds a way to
// run code while a file is read finds no token there, and no file can be opened.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The only argument of this program in such a process.
inline constexpr char kCheckModule[] = "--check-module";

// Runs this program as such a process over `bytes`; takes a second, and a minute at most. INVALID_ARGUMENT as
// CheckScript, and if the process dies or takes too long; RESOURCE_EXHAUSTED if there can be none. Thread-safe.
absl::Status CheckModuleApart(const std::string& bytes);

// The work of that process: reads the file from its standard input, gives up all rights that it can, checks, and says
// on its standard output what is wrong. Returns its exit status, 0 if nothing is.
int CheckModuleOfInput();

}  // namespace chainfleet
