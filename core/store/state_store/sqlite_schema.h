// The tables of the embedded store and the migrations between schema versions.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/store/state_store/object_home.h"
#include "core/store/state_store/sqlite_connection.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

inline constexpr int kSqliteSchemaVersion = 18;

// Creates or migrates the tables and takes the store over, in one transaction. `fresh_incarnation` names a new or
// restored store. FAILED_PRECONDITION / SCHEMA_TOO_NEW, with both versions: a newer program wrote it. OTHER_STORE
// (object_home.h).
absl::Status PrepareSqliteSchema(const std::string& fresh_incarnation, Opening opening, const ObjectHome& home,
                                 SqliteConnection* connection);

}  // namespace chainfleet
