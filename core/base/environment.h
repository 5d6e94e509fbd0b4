// Settings from the process's environment, read once by mains: the data directory and the token of calls.
#pragma once

#include <optional>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The value of a variable, "" if it is not set.
std::string EnvironmentVariable(const std::string& name);

// This machine's host name, as other machines may know it; "localhost" if it has none.
std::string HostName();

// CHAINFLEET_DATA, else $XDG_DATA_HOME/chainfleet, else ~/.local/share/chainfleet.
std::string DefaultDataFolder();

// Variables with a secret; each has another one, NAME_FILE, that names a file with the secret in it.
inline constexpr char kCallerToken[] = "CHAINFLEET_TOKEN", kWorkerToken[] = "CHAINFLEET_WORKER_TOKEN";

// The value of `variable`, else the content of the file that `variable`_FILE names. nullopt if neither is set; "" if
// one is set and empty. NOT_FOUND or PERMISSION_DENIED naming the variable and the file.
absl::StatusOr<std::optional<std::string>> TokenText(const std::string& variable);

// The first word of TokenText, "" if there is none. Calls carry this word.
absl::StatusOr<std::string> BearerToken(const std::string& variable = kCallerToken);

}  // namespace chainfleet
