#include "core/store/state_store/sql_state_store.h"

#include <utility>

#include "core/base/mutex.h"
#include "core/domain/no_such.h"
#include "core/store/state_store/apply_change.h"
#include "core/store/state_store/apply_versions.h"
#include "core/store/state_store/sql_group_rows.h"

namespace chainfleet {
namespace {

// All reads in `read` see one state of the database.
template <typename Read>
auto InOneRead(SqlConnection* connection, Read read) -> decltype(read()) {
  CHAINFLEET_RETURN_IF_ERROR(connection->BeginRead());
  auto result = read();
  connection->Rollback();
  return result;
}

// UNAVAILABLE / NOT_LEADER if the store was taken over. In a transaction, also prevents a takeover until it ends.
absl::Status CheckOwnership(const StoreOwnership& mine, SqlConnection* connection) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection->Prepare(mine.generation_sql));
  CHAINFLEET_RETURN_IF_ERROR(s.Step().status());
  return CheckGeneration(mine.generation, s.Int(0));
}

}  // namespace

struct SqlStateStore::Side {
  Side(std::unique_ptr<SqlConnection> opened, std::string fetch_sql)
      : connection(std::move(opened)), rows(connection.get(), std::move(fetch_sql)) {}
  template <typename Method, typename... Values>
  auto Read(Method method, const Values&... values) {
    MutexLock lock(&mutex);
    return (rows.*method)(values...);
  }
  Mutex mutex;
  const std::unique_ptr<SqlConnection> connection CHAINFLEET_GUARDED_BY(mutex);
  SqlGroupRows rows CHAINFLEET_GUARDED_BY(mutex);
  absl::Status loss CHAINFLEET_GUARDED_BY(mutex);  // set for the writer
};

SqlStateStore::SqlStateStore(std::unique_ptr<SqlConnection> writer, std::unique_ptr<SqlConnection> reader,
                             StoreOwnership ownership)
    : writer_(std::make_unique<Side>(std::move(writer), ownership.fetch_sql)),
      reader_(std::make_unique<Side>(std::move(reader), "")),
      ownership_(std::move(ownership)) {}
SqlStateStore::~SqlStateStore() = default;

absl::StatusOr<std::vector<ApplyResult>> SqlStateStore::Apply(std::span<const StateChange> changes, absl::Time wall) {
  MutexLock lock(&writer_->mutex);
  // After a loss the state in memory differs from the stored one, so every later call fails. The writer must not
  // reconnect either: a takeover ends only the connection that it knows.
  if (!writer_->loss.ok()) return writer_->loss;
  SqlConnection& connection = *writer_->connection;
  std::vector<ApplyResult> results;
  const auto write = [&]() -> absl::Status {
    writer_->mutex.AssertHeld();
    CHAINFLEET_RETURN_IF_ERROR(connection.BeginWrite());
    CHAINFLEET_RETURN_IF_ERROR(CheckOwnership(ownership_, &connection));
    CHAINFLEET_RETURN_IF_ERROR(writer_->rows.Expect(changes));
    for (const StateChange& change : changes) {
      CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult result, ApplyChange(change, wall, &writer_->rows));
      results.push_back(std::move(result));
    }
    return connection.Commit();
  };
  const absl::Status status = write();
  if (status.ok()) return results;
  connection.Rollback();
  if (absl::IsResourceExhausted(status)) {
    results.assign(changes.size(), ApplyResult());
    for (ApplyResult& result : results) result.status = status;
    return results;
  }
  // The connection may have been closed by a takeover; report NOT_LEADER instead of the connection error.
  const absl::Status ownership = CheckOwnership(ownership_, &connection);
  return writer_->loss = ReasonOf(ownership) == "NOT_LEADER" ? ownership : WithReason(status, "OUTCOME_UNKNOWN");
}

absl::StatusOr<std::vector<std::string>> SqlStateStore::FormerIncarnations() {
  return reader_->Read(&SqlRows::FormerIncarnations);
}

absl::StatusOr<StoredState> SqlStateStore::Load() {
  MutexLock lock(&reader_->mutex);
  SqlRows* const rows = &reader_->rows;
  return InOneRead(reader_->connection.get(), [&]() -> absl::StatusOr<StoredState> {
    StoredState state;
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<JobRow> jobs, rows->ListJobs());
    for (JobRow& row : jobs) {
      StoredJob stored{std::move(row), {}, {}};
      CHAINFLEET_ASSIGN_OR_RETURN(stored.chains, rows->ListChains(stored.row.id));
      CHAINFLEET_ASSIGN_OR_RETURN(stored.newest_version, rows->NewestVersion(stored.row.id));
      state.jobs.push_back(std::move(stored));
    }
    CHAINFLEET_ASSIGN_OR_RETURN(state.retired_names, rows->ListRetiredNames());
    CHAINFLEET_ASSIGN_OR_RETURN(state.datasets, rows->ListDatasets());
    CHAINFLEET_ASSIGN_OR_RETURN(state.models, rows->ListModels());
    CHAINFLEET_ASSIGN_OR_RETURN(state.aliases, rows->ListAliases());
    CHAINFLEET_ASSIGN_OR_RETURN(state.tokens, rows->ListTokens());
    return state;
  });
}

absl::StatusOr<std::vector<SegmentRecord>> SqlStateStore::ListSegments(const SegmentQuery& query) {
  return reader_->Read(&SqlRows::ListSegments, query);
}

absl::StatusOr<std::vector<ResumeRow>> SqlStateStore::ListResumePoints(const std::string& job) {
  return reader_->Read(&SqlRows::ListResumePoints, job);
}

absl::StatusOr<SegmentRecord> SqlStateStore::FindSegment(const std::string& job, const std::string& object) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<SegmentRecord> record, reader_->Read(&SqlRows::FindSegment, job, object));
  if (!record) return NoSuchSegment(job, object);
  return *std::move(record);
}

absl::StatusOr<Version> SqlStateStore::FindVersion(const std::string& job, int64_t number) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<Version> version, reader_->Read(&SqlRows::FindVersion, job, number));
  if (!version) return NoSuchVersion(job, number);
  return *std::move(version);
}

absl::StatusOr<std::vector<Version>> SqlStateStore::ListVersions(const std::string& job, int64_t after, int32_t limit) {
  return reader_->Read(&SqlRows::ListVersions, job, after, limit);
}

absl::StatusOr<std::vector<ExpiredObject>> SqlStateStore::ListExpired(int64_t last, int32_t limit) {
  return reader_->Read(&SqlRows::ListExpired, last, limit);
}

absl::StatusOr<int64_t> SqlStateStore::LastExpired() { return reader_->Read(&SqlRows::LastExpired); }

absl::StatusOr<std::vector<SegmentRecord>> SqlStateStore::ListCorrupt(const SegmentCursor& after, int32_t limit) {
  return reader_->Read(&SqlRows::ListCorrupt, after, limit);
}

absl::StatusOr<int64_t> SqlStateStore::CountCorrupt() { return reader_->Read(&SqlRows::CountCorrupt); }

absl::StatusOr<std::vector<EvaluationRow>> SqlStateStore::ListEvaluations(const EvaluationQuery& query) {
  return reader_->Read(&SqlRows::ListEvaluations, query);
}

absl::StatusOr<EvaluationRow> SqlStateStore::FindEvaluation(const std::string& id, const std::string& tenant) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<EvaluationRow> row, reader_->Read(&SqlRows::FindEvaluation, id, tenant));
  if (!row) return NoSuch("evaluation", id);
  return *std::move(row);
}

absl::StatusOr<std::string> SqlStateStore::FindFinding(const std::string& job, const std::string& part) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<std::string> body, reader_->Read(&SqlRows::FindFinding, job, part));
  if (!body) return NoSuchFinding(job, part);
  return *std::move(body);
}

absl::StatusOr<std::vector<FindingName>> SqlStateStore::ListFindings(const FindingName& after, int32_t limit) {
  return reader_->Read(&SqlRows::ListFindings, after, limit);
}

absl::StatusOr<bool> SqlStateStore::MayCommit(const ChainId& chain, int64_t lease_epoch) {
  MutexLock lock(&reader_->mutex);
  return InOneRead(reader_->connection.get(),
                   [&, rows = &reader_->rows] { return rows->MayCommit(chain, lease_epoch); });
}

absl::StatusOr<ChainReferences> SqlStateStore::ReferencesOfChain(const ChainId& chain) {
  MutexLock lock(&reader_->mutex);
  return InOneRead(reader_->connection.get(), [&, rows = &reader_->rows] { return rows->ReferencesOfChain(chain); });
}

absl::StatusOr<std::vector<ChainSweep>> SqlStateStore::ListSweeps(int64_t after, int32_t limit) {
  return reader_->Read(&SqlRows::ListSweeps, after, limit);
}

absl::StatusOr<std::vector<std::string>> SqlStateStore::ListGarbage(const std::string& after, int32_t limit) {
  return reader_->Read(&SqlRows::ListGarbage, after, limit);
}

}  // namespace chainfleet
