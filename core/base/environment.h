// Settings from the process's environment, which mains read once: the data directory and the token of calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/reread.h"
#include "core/base/status.h"

namespace chainfleet {

// Returns the value of a variable, or "" if the variable is not set.
std::string EnvironmentVariable(const std::string& name);

// Returns NAME=VALUE of each variable, for a child.
std::vector<std::string> OwnEnvironment();

// Returns this machine's host name, or "localhost" if the machine has none.
std::string HostName();

// Returns CHAINFLEET_DATA, else $XDG_DATA_HOME/chainfleet, else ~/.local/share/chainfleet.
std::string DefaultDataFolder();

// Variables that hold a secret. For each NAME, the variable NAME_FILE may name a file that holds the secret instead.
inline constexpr char kCallerToken[] = "CHAINFLEET_TOKEN", kWorkerToken[] = "CHAINFLEET_WORKER_TOKEN",
                      kMetricsToken[] = "CHAINFLEET_METRICS_TOKEN";

// Returns the first word of a text that holds a token, or "" if there is none.
std::string FirstWord(const std::string& text);

// Returns the value of `variable`, else the content of the file that `variable`_FILE names: nullopt if neither is set,
// "" if one is set and empty. NOT_FOUND or PERMISSION_DENIED name the variable and the file.
absl::StatusOr<std::optional<std::string>> TokenText(const std::string& variable);

// Returns the first word of TokenText, or "" if there is none. Calls carry this word.
absl::StatusOr<std::string> BearerToken(const std::string& variable = kCallerToken);

// INVALID_ARGUMENT, without the token: it has fewer than 128 bits (22 characters, or 32 if all are hexadecimal digits).
absl::Status CheckStrength(const std::string& token);

// As BearerToken, for a process that checks this token: "" if neither variable is set. INVALID_ARGUMENT if the token is
// empty or fails CheckStrength.
absl::StatusOr<std::string> StrongToken(const std::string& variable);

// StrongToken of kMetricsToken. Reread::ReadOn reads it again each second.
absl::StatusOr<Reread<std::string>> OpenMetricsToken();

// BearerToken of kCallerToken. A file is read again in each call of Current. The environment is read only now, because
// other threads of a program that uses the client may change it.
absl::StatusOr<Reread<std::string>> OpenCallerToken();

}  // namespace chainfleet
