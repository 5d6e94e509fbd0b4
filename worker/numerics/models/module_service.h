// The main function of a process that runs a user's TorchScript module (module_process.h).
#pragma once

#include <functional>

#include "core/base/status.h"

namespace chainfleet {

// Serves the calls of the process that started this one, until that process closes the socket. LibTorch opens some
// files at its first use; then `confine` takes all rights from this process, and only then it reads the module. Returns
// the exit status.
int ServeModule(const std::function<absl::Status()>& confine);

}  // namespace chainfleet
