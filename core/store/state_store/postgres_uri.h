// What --state says of a PostgreSQL database, looked at before libpq sees it: libpq quotes what it cannot read, and
// that may be a part of the password.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace chainfleet {

// `uri`: postgresql://user@host/database?... or the keywords of libpq. INVALID_ARGUMENT, repeating nothing of it: libpq
// cannot read it, or would take what is meant as user or password for a host, port or database.
absl::Status CheckPostgresUri(const std::string& uri);

}  // namespace chainfleet
