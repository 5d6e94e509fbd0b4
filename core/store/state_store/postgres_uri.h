// Checks the PostgreSQL URI of --state before libpq sees it: libpq's errors quote text that may be part of a password.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace chainfleet {

// `uri`: postgresql://user@host/database?... or libpq keywords. INVALID_ARGUMENT, quoting nothing of it: libpq cannot
// parse it, or would take a part of user or password for a host, port or database.
absl::Status CheckPostgresUri(const std::string& uri);

// True if `uri` has the password of the user or of the private key (`sslpassword`). False if libpq cannot parse it.
bool HasPassword(const std::string& uri);

}  // namespace chainfleet
