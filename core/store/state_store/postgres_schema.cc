#include "core/store/state_store/postgres_schema.h"

#include "absl/strings/str_cat.h"
#include "core/store/state_store/sql_query.h"

namespace chainfleet {
namespace {

// kMigrations[v] leads from version v to v + 1. Never edit a released one: append. Text columns that are read in order
// use byte order, whatever the database's collation.
constexpr const char* kMigrations[kPostgresSchemaVersion] = {
    R"sql(
CREATE TABLE store (incarnation TEXT NOT NULL, schema_version BIGINT NOT NULL);
CREATE TABLE leader (
  generation BIGINT PRIMARY KEY, address TEXT NOT NULL, backend_pid INTEGER NOT NULL, renewed_at TIMESTAMPTZ NOT NULL);
INSERT INTO leader VALUES (0, '', 0, '-infinity');
CREATE TABLE jobs (
  sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT COLLATE "C" NOT NULL UNIQUE, request_id TEXT UNIQUE,
  dataset TEXT, plan TEXT NOT NULL, intent BIGINT NOT NULL, created_ns BIGINT NOT NULL, finished_ns BIGINT,
  purged BIGINT NOT NULL DEFAULT 0);
CREATE INDEX jobs_by_dataset ON jobs (dataset) WHERE dataset IS NOT NULL;
CREATE TABLE chains (
  job TEXT COLLATE "C" NOT NULL, chain BIGINT NOT NULL, state BIGINT NOT NULL, lease_epoch BIGINT NOT NULL,
  worker TEXT NOT NULL, incarnation TEXT NOT NULL, lease_committed BIGINT NOT NULL, attempts BIGINT NOT NULL,
  step BIGINT NOT NULL, num_draws BIGINT NOT NULL, last_digest TEXT NOT NULL, resume_sha256 TEXT NOT NULL,
  reason TEXT NOT NULL, crashes BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (job, chain));
CREATE TABLE resume_points (
  job TEXT COLLATE "C" NOT NULL, chain BIGINT NOT NULL, step BIGINT NOT NULL, sha256 TEXT NOT NULL, bytes BYTEA NOT NULL,
  object TEXT, PRIMARY KEY (job, chain));
CREATE TABLE segments (
  job TEXT COLLATE "C" NOT NULL, chain BIGINT NOT NULL, first_index BIGINT NOT NULL, digest TEXT NOT NULL,
  object TEXT NOT NULL, record TEXT NOT NULL, corrupt BIGINT NOT NULL DEFAULT 0, deleted BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (job, chain, first_index));
CREATE INDEX segments_by_object ON segments (object);
CREATE INDEX corrupt_segments ON segments (job, chain, first_index) WHERE corrupt = 1 AND deleted = 0;
CREATE TABLE snapshots (
  job TEXT COLLATE "C" NOT NULL, number BIGINT NOT NULL, draws_of_chain TEXT NOT NULL, created_ns BIGINT NOT NULL,
  PRIMARY KEY (job, number));
CREATE TABLE datasets (name TEXT COLLATE "C" PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE garbage (object TEXT COLLATE "C" PRIMARY KEY, deleting BIGINT NOT NULL DEFAULT 0);
CREATE TABLE uploads (upload TEXT NOT NULL, object TEXT NOT NULL, PRIMARY KEY (upload, object));
CREATE INDEX uploads_by_object ON uploads (object);
CREATE TABLE sweeps (
  ticket BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job TEXT COLLATE "C" NOT NULL, chain BIGINT NOT NULL,
  UNIQUE (job, chain));
)sql",
    R"sql(
CREATE TABLE models (name TEXT COLLATE "C" PRIMARY KEY, body TEXT NOT NULL);
ALTER TABLE jobs ADD COLUMN module TEXT;
CREATE INDEX jobs_by_module ON jobs (module) WHERE module IS NOT NULL;
)sql",
    "CREATE TABLE former_incarnations (incarnation TEXT NOT NULL);",
    R"sql(
ALTER TABLE jobs ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
ALTER TABLE jobs DROP CONSTRAINT jobs_request_id_key;
ALTER TABLE jobs ADD UNIQUE (tenant, request_id);
)sql",
    R"sql(
CREATE TABLE evaluations (
  sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, job TEXT COLLATE "C" NOT NULL,
  tenant TEXT NOT NULL, request_id TEXT, request BYTEA NOT NULL, state BIGINT NOT NULL,
  error_code BIGINT NOT NULL DEFAULT 0, error_reason TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '',
  created_ns BIGINT NOT NULL, finished_ns BIGINT, result BYTEA, UNIQUE (tenant, request_id));
CREATE INDEX evaluations_of_job ON evaluations (job, sequence);
)sql",
    // last_version: includes deleted versions. expired: objects of tombstones that predictions may still be reading.
    R"sql(
ALTER TABLE jobs ADD COLUMN last_version BIGINT NOT NULL DEFAULT 0;
UPDATE jobs SET last_version = COALESCE((SELECT MAX(number) FROM snapshots WHERE snapshots.job = jobs.id), 0);
CREATE TABLE aliases (
  tenant TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL, job TEXT COLLATE "C" NOT NULL, number BIGINT NOT NULL, PRIMARY KEY (tenant, name));
CREATE INDEX aliases_by_job ON aliases (job);
CREATE TABLE expired (
  ticket BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job TEXT COLLATE "C" NOT NULL, chain BIGINT NOT NULL, object TEXT NOT NULL);
CREATE INDEX expired_by_chain ON expired (job, chain);
)sql",
    // asked_chains: 0 unless chains were added.
    R"sql(
ALTER TABLE jobs ADD COLUMN stopped TEXT NOT NULL DEFAULT '[]';
ALTER TABLE jobs ADD COLUMN asked_chains BIGINT NOT NULL DEFAULT 0;
)sql",
    // The place of the objects; empty until a server has set it.
    R"sql(
ALTER TABLE store ADD COLUMN objects_id TEXT NOT NULL DEFAULT '';
ALTER TABLE store ADD COLUMN objects_in TEXT NOT NULL DEFAULT '';
)sql",
    "ALTER TABLE evaluations ADD COLUMN version BIGINT NOT NULL DEFAULT 0;",
    // Uploads no longer take garbage back, so the column is unused.
    "ALTER TABLE garbage DROP COLUMN deleting;",
    // Findings of ended jobs.
    R"sql(
CREATE TABLE findings (
  job TEXT COLLATE "C" NOT NULL, part TEXT COLLATE "C" NOT NULL, body BYTEA NOT NULL, PRIMARY KEY (job, part));
)sql",
    R"sql(
CREATE TABLE tokens (
  sha256 TEXT COLLATE "C" PRIMARY KEY, tenant TEXT NOT NULL, role BIGINT NOT NULL, puts_models BIGINT NOT NULL,
  note TEXT NOT NULL, created_by TEXT NOT NULL, created_ns BIGINT NOT NULL, expires_ns BIGINT NOT NULL);
)sql",
    // Until then a worker belonged to no tenant. 5 is Role::kWorker.
    R"sql(
ALTER TABLE tokens ADD COLUMN max_uses BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN uses BIGINT NOT NULL DEFAULT 0;
UPDATE tokens SET tenant = '*' WHERE role = 5;
)sql",
    // Keys of data sets and models in place of names (ContentKey). No query could use the index.
    R"sql(
UPDATE datasets SET name = (body::json ->> 'tenant') || '/' || name WHERE body::json ->> 'tenant' != 'default';
UPDATE models SET name = (body::json ->> 'tenant') || '/' || name WHERE body::json ->> 'tenant' != 'default';
UPDATE jobs SET dataset = (plan::json -> 'dataset' ->> 'tenant') || '/' || dataset
  WHERE dataset IS NOT NULL AND plan::json -> 'dataset' ->> 'tenant' != 'default';
UPDATE jobs SET module = (
  SELECT string_agg(CASE COALESCE(file ->> 'tenant', 'default') WHEN 'default' THEN '' ELSE
                      (file ->> 'tenant') || '/' END || (file ->> 'name'), ' ')
  FROM (SELECT plan::json -> 'module' AS file UNION ALL
        SELECT json_array_elements(COALESCE(plan::json -> 'weights', '[]'::json))) AS files)
  WHERE module IS NOT NULL;
DROP INDEX IF EXISTS jobs_by_module;
)sql",
    // The objects of data sets and models, which no change has to look for in the records.
    R"sql(
CREATE TABLE content_objects (
  content TEXT COLLATE "C" NOT NULL, object TEXT COLLATE "C" NOT NULL, PRIMARY KEY (content, object));
CREATE INDEX content_objects_by_object ON content_objects (object);
INSERT INTO content_objects
  SELECT DISTINCT 'dataset ' || datasets.name, shard -> 'object' ->> 'name'
  FROM datasets, json_array_elements(datasets.body::json -> 'shards') AS shards (shard);
INSERT INTO content_objects SELECT 'model ' || name, body::json -> 'object' ->> 'name' FROM models;
)sql",
    // The signature of the resume point; NULL: a release before 0.2 committed it.
    "ALTER TABLE resume_points ADD COLUMN proof TEXT;"};

// 0 if there are no tables yet.
absl::StatusOr<int64_t> SchemaVersion(PostgresConnection* connection) {
  {
    CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection->Prepare("SELECT to_regclass('store') IS NULL"));
    CHAINFLEET_RETURN_IF_ERROR(s.Step().status());
    if (s.Text(0) == "t") return 0;
  }
  return sql::Number(connection, "SELECT schema_version FROM store");
}

}  // namespace

absl::StatusOr<int64_t> LockPostgresSchema(PostgresConnection* connection) {
  // The key is arbitrary. It makes coordinators prepare this database one after the other.
  CHAINFLEET_RETURN_IF_ERROR(connection->Execute("SELECT pg_advisory_xact_lock(7400)"));
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t version, SchemaVersion(connection));
  if (version > kPostgresSchemaVersion) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat("the state store has schema version ", version,
                                                                 ", this program knows up to ", kPostgresSchemaVersion,
                                                                 ": run the newer chainfleet-server")),
                      "SCHEMA_TOO_NEW");
  }
  return version;
}

absl::Status MigratePostgresSchema(int64_t version, const std::string& fresh_incarnation,
                                   PostgresConnection* connection) {
  if (version == kPostgresSchemaVersion) return absl::OkStatus();
  CHAINFLEET_RETURN_IF_ERROR(connection->Execute("SET LOCAL statement_timeout = 0"));  // large tables take long
  for (int64_t v = version; v < kPostgresSchemaVersion; ++v) {
    CHAINFLEET_RETURN_IF_ERROR(connection->Execute(kMigrations[v]));
  }
  if (version == 0) {
    return sql::Run(connection, "INSERT INTO store (incarnation, schema_version) VALUES (?, ?)", fresh_incarnation,
                    kPostgresSchemaVersion);
  }
  return connection->Execute(absl::StrCat("UPDATE store SET schema_version = ", kPostgresSchemaVersion));
}

}  // namespace chainfleet
