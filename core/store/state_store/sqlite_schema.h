// The tables of the embedded store and the steps from each schema version to the next.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/store/state_store/object_home.h"
#include "core/store/state_store/sqlite_connection.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

inline constexpr int kSqliteSchemaVersion = 13;

// Makes or migrates the tables and takes the store over, in one transaction: `fresh_incarnation` names a new or
// restored store. FAILED_PRECONDITION / SCHEMA_TOO_NEW with both versions if a newer program wrote it; OTHER_STORE of
// object_home.h.
absl::Status PrepareSqliteSchema(const std::string& fresh_incarnation, Opening opening, const ObjectHome& home,
                                 SqliteConnection* connection);

}  // namespace chainfleet
