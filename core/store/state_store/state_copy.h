// Copies of a whole state store, for backups. A copy is one SQLite file with the tables of the current schema, whatever
// the engine of the store. A server opens it only with ObjectHome::moved, because its objects are elsewhere.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/store/state_store/database_password.h"

namespace chainfleet {

// Copies the state at one moment to the new file `path`, over a connection of its own, while the store is in use.
// `store` is the path of a SQLite file or a PostgreSQL URI, whose password is `password` if that is not null. Blocks.
// Errors of the database and of the disk.
absl::Status CopyState(const std::string& store, const std::string& path,
                       const std::shared_ptr<DatabasePassword>& password = nullptr);

// Calls `visit` once with each object that the copy at `path` names, until `visit` returns an error. Leaves out corrupt
// segments.
absl::Status VisitObjects(const std::string& path, const std::function<absl::Status(const BlobRef&)>& visit);

// Fills an empty PostgreSQL database with the copy at `path`, in one transaction. Migrates the copy if an older release
// made it. FAILED_PRECONDITION: the database has rows, or a coordinator leads on it. SCHEMA_TOO_NEW.
absl::Status FillPostgres(const std::string& path, const std::string& uri,
                          const std::shared_ptr<DatabasePassword>& password = nullptr);

}  // namespace chainfleet
