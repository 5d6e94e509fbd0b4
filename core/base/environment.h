// What the environment of the process says, read once by mains: where data live, and the token that calls carry.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The value of a variable, "" if it is not set.
std::string EnvironmentVariable(const std::string& name);

// Of this machine, as other machines may know it; "localhost" if it has none.
std::string HostName();

// CHAINFLEET_DATA, else $XDG_DATA_HOME/chainfleet, else ~/.local/share/chainfleet.
std::string DefaultDataFolder();

// CHAINFLEET_TOKEN, else the content of the file that CHAINFLEET_TOKEN_FILE names, else "": what a server knows callers
// by. NOT_FOUND or PERMISSION_DENIED naming the variable and the file.
absl::StatusOr<std::string> TokenText();

// The first word of TokenText: what a call carries.
absl::StatusOr<std::string> BearerToken();

}  // namespace chainfleet
