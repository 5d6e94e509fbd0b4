// The tables of the store in PostgreSQL and the steps from each schema version to the next.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/store/state_store/postgres_connection.h"

namespace chainfleet {

inline constexpr int kPostgresSchemaVersion = 11;

// Inside a write transaction of `connection`, which makes coordinators that start together take turns: the version of
// the tables; 0 before there are any. FAILED_PRECONDITION / SCHEMA_TOO_NEW with both versions if a newer program wrote
// them.
absl::StatusOr<int64_t> LockPostgresSchema(PostgresConnection* connection);

// In the same transaction: from `version` to ours. `fresh_incarnation` names a new store.
absl::Status MigratePostgresSchema(int64_t version, const std::string& fresh_incarnation,
                                   PostgresConnection* connection);

}  // namespace chainfleet
