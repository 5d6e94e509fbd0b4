// The flags --tenant-...: bounds and weights that may differ by tenant.
#pragma once

#include <CLI/CLI.hpp>

#include "server/server.h"

namespace chainfleet {

// Adds the flags, which set parts of `options`; the present values are their defaults. A flag takes N, for every tenant
// without a value of its own, or TENANT=N, and may be given several times. Parsing throws CLI::ValidationError, naming
// the flag and the text: a wrong name of a tenant, no number, a number out of range, or a second value for the same
// tenant.
void AddTenantFlags(CLI::App* app, ServerOptions* options);

}  // namespace chainfleet
