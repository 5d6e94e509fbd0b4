#include "core/store/state_store/sqlite_state_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/store/state_store/apply_change.h"
#include "core/store/state_store/sqlite_rows.h"
#include "core/store/state_store/sqlite_schema.h"

namespace chainfleet {
namespace {

absl::Status CheckFile(const std::string& path, SqliteConnection* connection) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqliteStatement check, connection->Prepare("PRAGMA quick_check(1)"));
  CHAINFLEET_RETURN_IF_ERROR(check.Step().status());
  if (check.Text(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " is damaged (", check.Text(0), "): restore it from a backup"));
}

// Reads on one connection see one state of the database.
template <typename Read>
auto InOneRead(SqliteConnection* connection, Read read) -> decltype(read()) {
  CHAINFLEET_RETURN_IF_ERROR(connection->Execute("BEGIN"));
  auto result = read();
  connection->Rollback();
  return result;
}

}  // namespace

struct SqliteStateStore::Side {
  Mutex mutex;
  std::unique_ptr<SqliteConnection> connection CHAINFLEET_GUARDED_BY(mutex);
  std::optional<SqliteRows> rows CHAINFLEET_GUARDED_BY(mutex);

  absl::Status Open(const std::string& path, const std::string& settings) {
    MutexLock lock(&mutex);
    CHAINFLEET_ASSIGN_OR_RETURN(connection, SqliteConnection::Open(path));
    rows.emplace(connection.get());
    return connection->Execute(settings);
  }
};

SqliteStateStore::SqliteStateStore() : writer_(std::make_unique<Side>()), reader_(std::make_unique<Side>()) {}
SqliteStateStore::~SqliteStateStore() = default;

absl::StatusOr<std::unique_ptr<SqliteStateStore>> SqliteStateStore::Open(const std::string& path,
                                                                         const std::string& fresh_incarnation) {
  std::unique_ptr<SqliteStateStore> store(new SqliteStateStore);
  CHAINFLEET_RETURN_IF_ERROR(store->writer_->Open(path, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
  {
    MutexLock lock(&store->writer_->mutex);
    SqliteConnection* connection = store->writer_->connection.get();
    CHAINFLEET_RETURN_IF_ERROR(CheckFile(path, connection));
    CHAINFLEET_RETURN_IF_ERROR(PrepareSqliteSchema(fresh_incarnation, connection));
    CHAINFLEET_ASSIGN_OR_RETURN(store->incarnation_, store->writer_->rows->Incarnation());
    CHAINFLEET_ASSIGN_OR_RETURN(store->generation_, store->writer_->rows->Generation());
  }
  CHAINFLEET_RETURN_IF_ERROR(store->reader_->Open(path, "PRAGMA query_only = 1"));
  return store;
}

absl::StatusOr<std::vector<ApplyResult>> SqliteStateStore::Apply(std::span<const StateChange> changes,
                                                                 absl::Time wall) {
  MutexLock lock(&writer_->mutex);
  SqliteConnection& connection = *writer_->connection;
  std::vector<ApplyResult> results;
  const auto write = [&]() -> absl::Status {
    CHAINFLEET_RETURN_IF_ERROR(connection.Execute("BEGIN IMMEDIATE"));
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t generation, writer_->rows->Generation());
    CHAINFLEET_RETURN_IF_ERROR(CheckGeneration(generation_, generation));
    for (const StateChange& change : changes) {
      CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult result, ApplyChange(change, wall, &*writer_->rows));
      results.push_back(std::move(result));
    }
    return connection.Execute("COMMIT");
  };
  const absl::Status status = write();
  if (status.ok()) return results;
  connection.Rollback();
  if (absl::IsResourceExhausted(status)) {
    results.assign(changes.size(), ApplyResult());
    for (ApplyResult& result : results) result.status = status;
    return results;
  }
  return absl::IsUnavailable(status) ? status : WithReason(status, "OUTCOME_UNKNOWN");
}

absl::StatusOr<StoredState> SqliteStateStore::Load() {
  MutexLock lock(&reader_->mutex);
  SqliteRows& rows = *reader_->rows;
  return InOneRead(reader_->connection.get(), [&]() -> absl::StatusOr<StoredState> {
    StoredState state;
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<JobRow> jobs, rows.ListJobs());
    for (JobRow& row : jobs) {
      StoredJob stored{std::move(row), {}, {}};
      CHAINFLEET_ASSIGN_OR_RETURN(stored.chains, rows.ListChains(stored.row.id));
      CHAINFLEET_ASSIGN_OR_RETURN(stored.newest_snapshot, rows.NewestSnapshot(stored.row.id));
      state.jobs.push_back(std::move(stored));
    }
    CHAINFLEET_ASSIGN_OR_RETURN(state.datasets, rows.ListDatasets());
    CHAINFLEET_ASSIGN_OR_RETURN(state.models, rows.ListModels());
    return state;
  });
}

absl::StatusOr<std::vector<SegmentRecord>> SqliteStateStore::ListSegments(const SegmentQuery& query) {
  MutexLock lock(&reader_->mutex);
  return reader_->rows->ListSegments(query);
}

absl::StatusOr<SegmentRecord> SqliteStateStore::FindSegment(const std::string& job, const std::string& object) {
  MutexLock lock(&reader_->mutex);
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<SegmentRecord> record, reader_->rows->FindSegment(job, object));
  if (!record) return absl::NotFoundError(absl::StrCat("job ", job, " has no segment ", object));
  return *std::move(record);
}

absl::StatusOr<Snapshot> SqliteStateStore::FindSnapshot(const std::string& job, int64_t number) {
  MutexLock lock(&reader_->mutex);
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<Snapshot> snapshot, reader_->rows->FindSnapshot(job, number));
  if (!snapshot) return absl::NotFoundError(absl::StrCat("job ", job, " has no version ", number));
  return *std::move(snapshot);
}

absl::StatusOr<std::vector<SegmentRecord>> SqliteStateStore::ListCorrupt(const SegmentCursor& after, int32_t limit) {
  MutexLock lock(&reader_->mutex);
  return reader_->rows->ListCorrupt(after, limit);
}

absl::StatusOr<int64_t> SqliteStateStore::CountCorrupt() {
  MutexLock lock(&reader_->mutex);
  return reader_->rows->CountCorrupt();
}

absl::StatusOr<bool> SqliteStateStore::MayCommit(const ChainId& chain, int64_t lease_epoch) {
  MutexLock lock(&reader_->mutex);
  return InOneRead(reader_->connection.get(), [&] { return reader_->rows->MayCommit(chain, lease_epoch); });
}

absl::StatusOr<ChainReferences> SqliteStateStore::ReferencesOfChain(const ChainId& chain) {
  MutexLock lock(&reader_->mutex);
  return InOneRead(reader_->connection.get(), [&] { return reader_->rows->ReferencesOfChain(chain); });
}

absl::StatusOr<std::vector<ChainSweep>> SqliteStateStore::ListSweeps(int64_t after, int32_t limit) {
  MutexLock lock(&reader_->mutex);
  return reader_->rows->ListSweeps(after, limit);
}

absl::StatusOr<std::vector<std::string>> SqliteStateStore::ListGarbage(const std::string& after, int32_t limit) {
  MutexLock lock(&reader_->mutex);
  return reader_->rows->ListGarbage(after, limit);
}

}  // namespace chainfleet
