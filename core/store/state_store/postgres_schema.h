// The tables of the store in PostgreSQL and the steps from each schema version to the next.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/store/state_store/postgres_connection.h"

namespace chainfleet {

inline constexpr int kPostgresSchemaVersion = 7;

// Inside a write transaction of `connection`: makes or migrates the tables. Coordinators that start together take
// turns. `fresh_incarnation` names a new store. FAILED_PRECONDITION / SCHEMA_TOO_NEW with both versions if a newer
// program wrote it.
absl::Status PreparePostgresSchema(const std::string& fresh_incarnation, PostgresConnection* connection);

}  // namespace chainfleet
