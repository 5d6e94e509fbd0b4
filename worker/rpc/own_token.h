// The token by which a worker joins, as the environment of its process gives it.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// True if CHAINFLEET_WORKER_TOKEN_COMMAND prints the token: neither CHAINFLEET_WORKER_TOKEN nor its file is given.
bool TokenIsPrinted();

// Reads the token, or runs the command in a shell, which takes 10 s at most. Returns a caller's token if the
// environment has none for workers, and "" if it has none at all. The command does not see the tokens of the
// environment. Errors have no output of the command. INVALID_ARGUMENT: it printed nothing. Errors of TokenText and
// RunCommand.
absl::StatusOr<std::string> OwnToken();

}  // namespace chainfleet
