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

// Copies the copy `from`, which an older release may have made, to the new file `to`, with today's tables. DATA_LOSS:
// it is no copy. SCHEMA_TOO_NEW. Errors of the disk.
absl::Status MigrateCopy(const std::string& from, const std::string& to);

// FAILED_PRECONDITION / NOT_EMPTY if the store, as of CopyState, has a job, a data set or a model.
absl::Status CheckHoldsNothing(const std::string& store, const std::shared_ptr<DatabasePassword>& password = nullptr);

// Fills a PostgreSQL database with the copy at `path` in place of its tokens, in one transaction. `path` comes from
// MigrateCopy. FAILED_PRECONDITION: NOT_EMPTY, or a coordinator leads on the database. ALREADY_EXISTS / NOT_EMPTY: the
// database was filled from a copy before, and no server has opened it since. SCHEMA_TOO_NEW.
absl::Status FillPostgres(const std::string& path, const std::string& uri,
                          const std::shared_ptr<DatabasePassword>& password = nullptr);

}  // namespace chainfleet
