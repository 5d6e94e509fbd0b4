#include "core/store/state_store/sqlite_schema.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/store/state_store/sql_query.h"
#include "core/store/state_store/sql_rows.h"

namespace chainfleet {
namespace {

// kMigrations[v] leads from version v to v + 1. Never edit a released one: append.
constexpr const char* kMigrations[kSqliteSchemaVersion] = {
    R"sql(
CREATE TABLE store (incarnation TEXT NOT NULL, generation INTEGER NOT NULL);
CREATE TABLE jobs (
  sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, request_id TEXT UNIQUE, dataset TEXT, plan TEXT NOT NULL,
  intent INTEGER NOT NULL, created_ns INTEGER NOT NULL, finished_ns INTEGER, purged INTEGER NOT NULL DEFAULT 0);
CREATE INDEX jobs_by_dataset ON jobs (dataset) WHERE dataset IS NOT NULL;
CREATE TABLE chains (
  job TEXT NOT NULL, chain INTEGER NOT NULL, state INTEGER NOT NULL, lease_epoch INTEGER NOT NULL, worker TEXT NOT NULL,
  incarnation TEXT NOT NULL, lease_committed INTEGER NOT NULL, attempts INTEGER NOT NULL, step INTEGER NOT NULL,
  num_draws INTEGER NOT NULL, last_digest TEXT NOT NULL, resume_sha256 TEXT NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (job, chain)) WITHOUT ROWID;
CREATE TABLE resume_points (
  job TEXT NOT NULL, chain INTEGER NOT NULL, step INTEGER NOT NULL, sha256 TEXT NOT NULL, bytes BLOB NOT NULL, object TEXT,
  PRIMARY KEY (job, chain));
CREATE TABLE segments (
  job TEXT NOT NULL, chain INTEGER NOT NULL, first_index INTEGER NOT NULL, digest TEXT NOT NULL, object TEXT NOT NULL,
  record TEXT NOT NULL, corrupt INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (job, chain, first_index)) WITHOUT ROWID;
CREATE INDEX segments_by_object ON segments (object);
CREATE TABLE snapshots (
  job TEXT NOT NULL, number INTEGER NOT NULL, draws_of_chain TEXT NOT NULL, created_ns INTEGER NOT NULL,
  PRIMARY KEY (job, number)) WITHOUT ROWID;
CREATE TABLE datasets (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE garbage (object TEXT PRIMARY KEY) WITHOUT ROWID;
)sql",
    "ALTER TABLE chains ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;",
    R"sql(
ALTER TABLE garbage ADD COLUMN deleting INTEGER NOT NULL DEFAULT 0;
CREATE TABLE uploads (upload TEXT NOT NULL, object TEXT NOT NULL, PRIMARY KEY (upload, object)) WITHOUT ROWID;
CREATE INDEX uploads_by_object ON uploads (object);
CREATE TABLE sweeps (
  ticket INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, chain INTEGER NOT NULL, UNIQUE (job, chain));
INSERT INTO sweeps (job, chain) SELECT job, chain FROM chains WHERE lease_epoch > 0;
CREATE INDEX corrupt_segments ON segments (job, chain, first_index) WHERE corrupt = 1 AND deleted = 0;
)sql",
    R"sql(
CREATE TABLE models (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
ALTER TABLE jobs ADD COLUMN module TEXT;
CREATE INDEX jobs_by_module ON jobs (module) WHERE module IS NOT NULL;
)sql",
    "CREATE TABLE former_incarnations (incarnation TEXT NOT NULL);",
    // SQLite cannot alter a column's UNIQUE, so copy the table.
    R"sql(
CREATE TABLE jobs_of_tenants (
  sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, request_id TEXT, dataset TEXT, module TEXT,
  plan TEXT NOT NULL, intent INTEGER NOT NULL, created_ns INTEGER NOT NULL, finished_ns INTEGER,
  purged INTEGER NOT NULL DEFAULT 0, UNIQUE (tenant, request_id));
INSERT INTO jobs_of_tenants
  SELECT sequence, id, 'default', request_id, dataset, module, plan, intent, created_ns, finished_ns, purged FROM jobs;
DROP TABLE jobs;
ALTER TABLE jobs_of_tenants RENAME TO jobs;
CREATE INDEX jobs_by_dataset ON jobs (dataset) WHERE dataset IS NOT NULL;
CREATE INDEX jobs_by_module ON jobs (module) WHERE module IS NOT NULL;
)sql",
    R"sql(
CREATE TABLE evaluations (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, job TEXT NOT NULL, tenant TEXT NOT NULL,
  request_id TEXT, request BLOB NOT NULL, state INTEGER NOT NULL, error_code INTEGER NOT NULL DEFAULT 0,
  error_reason TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', created_ns INTEGER NOT NULL,
  finished_ns INTEGER, result BLOB, UNIQUE (tenant, request_id));
CREATE INDEX evaluations_of_job ON evaluations (job, sequence);
)sql",
    // last_version: includes deleted versions. expired: objects of tombstones that predictions may still be reading.
    R"sql(
ALTER TABLE jobs ADD COLUMN last_version INTEGER NOT NULL DEFAULT 0;
UPDATE jobs SET last_version = COALESCE((SELECT MAX(number) FROM snapshots WHERE snapshots.job = jobs.id), 0);
CREATE TABLE aliases (
  tenant TEXT NOT NULL, name TEXT NOT NULL, job TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (tenant, name))
  WITHOUT ROWID;
CREATE INDEX aliases_by_job ON aliases (job);
CREATE TABLE expired (
  ticket INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, chain INTEGER NOT NULL, object TEXT NOT NULL);
CREATE INDEX expired_by_chain ON expired (job, chain);
)sql",
    // asked_chains: 0 unless chains were added.
    R"sql(
ALTER TABLE jobs ADD COLUMN stopped TEXT NOT NULL DEFAULT '[]';
ALTER TABLE jobs ADD COLUMN asked_chains INTEGER NOT NULL DEFAULT 0;
)sql",
    // The place of the objects; empty until a server has set it.
    R"sql(
ALTER TABLE store ADD COLUMN objects_id TEXT NOT NULL DEFAULT '';
ALTER TABLE store ADD COLUMN objects_in TEXT NOT NULL DEFAULT '';
)sql",
    "ALTER TABLE evaluations ADD COLUMN version INTEGER NOT NULL DEFAULT 0;",
    // Uploads no longer take garbage back, so the column is unused.
    "ALTER TABLE garbage DROP COLUMN deleting;",
    // Findings of ended jobs.
    R"sql(
CREATE TABLE findings (
  job TEXT NOT NULL, part TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (job, part));
)sql",
    R"sql(
CREATE TABLE tokens (
  sha256 TEXT PRIMARY KEY, tenant TEXT NOT NULL, role INTEGER NOT NULL, puts_models INTEGER NOT NULL, note TEXT NOT NULL,
  created_by TEXT NOT NULL, created_ns INTEGER NOT NULL, expires_ns INTEGER NOT NULL) WITHOUT ROWID;
)sql",
    // Until then a worker belonged to no tenant. 5 is Role::kWorker.
    R"sql(
ALTER TABLE tokens ADD COLUMN max_uses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
UPDATE tokens SET tenant = '*' WHERE role = 5;
)sql",
    // Keys of data sets and models in place of names (ContentKey). No query could use the index.
    R"sql(
UPDATE datasets SET name = json_extract(body, '$.tenant') || '/' || name WHERE json_extract(body, '$.tenant') != 'default';
UPDATE models SET name = json_extract(body, '$.tenant') || '/' || name WHERE json_extract(body, '$.tenant') != 'default';
UPDATE jobs SET dataset = json_extract(plan, '$.dataset.tenant') || '/' || dataset
  WHERE dataset IS NOT NULL AND json_extract(plan, '$.dataset.tenant') != 'default';
UPDATE jobs SET module = (
  SELECT group_concat(CASE COALESCE(json_extract(file, '$.tenant'), 'default') WHEN 'default' THEN '' ELSE
                        json_extract(file, '$.tenant') || '/' END || json_extract(file, '$.name'), ' ')
  FROM (SELECT json_extract(plan, '$.module') AS file UNION ALL SELECT value FROM json_each(plan, '$.weights')))
  WHERE module IS NOT NULL;
DROP INDEX IF EXISTS jobs_by_module;
)sql",
    // The objects of data sets and models, which no change has to look for in the records.
    R"sql(
CREATE TABLE content_objects (content TEXT NOT NULL, object TEXT NOT NULL, PRIMARY KEY (content, object)) WITHOUT ROWID;
CREATE INDEX content_objects_by_object ON content_objects (object);
INSERT INTO content_objects
  SELECT DISTINCT 'dataset ' || datasets.name, json_extract(shard.value, '$.object.name')
  FROM datasets, json_each(datasets.body, '$.shards') AS shard;
INSERT INTO content_objects SELECT 'model ' || name, json_extract(body, '$.object.name') FROM models;
)sql",
    // The signature of the resume point; NULL: a release before 0.2 committed it.
    "ALTER TABLE resume_points ADD COLUMN proof TEXT;"};

absl::Status Migrate(const std::string& fresh_incarnation, Opening opening, const ObjectHome& home,
                     SqliteConnection* connection) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t version, sql::Number(connection, "PRAGMA user_version"));
  if (version > kSqliteSchemaVersion) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat("the state store has schema version ", version,
                                                                 ", this program knows up to ", kSqliteSchemaVersion,
                                                                 ": run the newer chainfleet-server")),
                      "SCHEMA_TOO_NEW");
  }
  for (int64_t v = version; v < kSqliteSchemaVersion; ++v) {
    CHAINFLEET_RETURN_IF_ERROR(connection->Execute(kMigrations[v]));
  }
  CHAINFLEET_RETURN_IF_ERROR(connection->Execute(absl::StrCat("PRAGMA user_version = ", kSqliteSchemaVersion)));
  if (version == 0) {
    CHAINFLEET_RETURN_IF_ERROR(
        sql::Run(connection, "INSERT INTO store (incarnation, generation) VALUES (?, 0)", fresh_incarnation));
  }
  CHAINFLEET_RETURN_IF_ERROR(SqlRows(connection).KeepHome(home));
  const bool restored = opening == Opening::kRestored;
  if (restored) CHAINFLEET_RETURN_IF_ERROR(SqlRows(connection).Restore(fresh_incarnation));
  return connection->Execute(
      absl::StrCat("UPDATE store SET generation = generation + ", 1 + (restored ? kRestoredLeap : 0)));
}

}  // namespace

absl::Status PrepareSqliteSchema(const std::string& fresh_incarnation, Opening opening, const ObjectHome& home,
                                 SqliteConnection* connection) {
  CHAINFLEET_RETURN_IF_ERROR(connection->BeginWrite());
  absl::Status status = Migrate(fresh_incarnation, opening, home, connection);
  if (status.ok()) status = connection->Commit();
  if (!status.ok()) connection->Rollback();
  return status;
}

}  // namespace chainfleet
