// The embedded StateStore: one SQLite file in WAL mode with synchronous=FULL. Tests open a database in memory instead.
#pragma once

#include <memory>
#include <string>

#include "core/store/state_store/object_home.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

// Opens or creates the file at `path`, checks it, and takes the store over. `fresh_incarnation` is random, used if the
// store is new or restored. DATA_LOSS: the file is damaged. FAILED_PRECONDITION / SCHEMA_TOO_NEW or OTHER_STORE (the
// objects are not at `home`), RESOURCE_EXHAUSTED / DISK_FULL, INTERNAL. The caller holds a lock on the folder, which
// excludes a second process.
absl::StatusOr<std::unique_ptr<StateStore>> OpenSqliteStateStore(const std::string& path,
                                                                 const std::string& fresh_incarnation,
                                                                 Opening opening = Opening::kUsual,
                                                                 const ObjectHome& home = {});

}  // namespace chainfleet
