// The tables of the store in PostgreSQL and the migrations between schema versions.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/store/state_store/postgres_connection.h"

namespace chainfleet {

inline constexpr int kPostgresSchemaVersion = 16;

// Returns the version of the tables, 0 if there are none. Runs in a write transaction of `connection` and takes a lock,
// so that coordinators that start together take turns. FAILED_PRECONDITION / SCHEMA_TOO_NEW, with both versions: a
// newer program wrote the tables.
absl::StatusOr<int64_t> LockPostgresSchema(PostgresConnection* connection);

// Migrates from `version` to the current one, in the same transaction. `fresh_incarnation` names a new store.
absl::Status MigratePostgresSchema(int64_t version, const std::string& fresh_incarnation,
                                   PostgresConnection* connection);

}  // namespace chainfleet
