#include "core/store/state_store/postgres_leader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/store/state_store/postgres_schema.h"
#include "core/store/state_store/sql_query.h"
#include "core/store/state_store/sql_rows.h"
#include "core/store/state_store/sql_state_store.h"

namespace chainfleet {
namespace {

constexpr char kWriterName[] = "chainfleet-leader";

std::string FetchSql() {
  return absl::StrCat(
      "SELECT ", sql::Listed(sql::ColumnsOf<ChainRow>(), "c."),
      ", r.step, CASE WHEN w.whole = 1 THEN r.bytes END, r.object, r.sha256, CASE WHEN w.whole = 1 THEN r.proof END, "
      "s.digest, j.intent "
      "FROM (SELECT job COLLATE \"C\" AS job, chain, first_index, whole FROM unnest(CAST(? AS TEXT[]), "
      "CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) AS u (job, chain, first_index, whole)) AS w "
      "JOIN chains AS c ON c.job = w.job AND c.chain = w.chain "
      "LEFT JOIN resume_points AS r ON r.job = w.job AND r.chain = w.chain "
      "LEFT JOIN segments AS s ON s.job = w.job AND s.chain = w.chain AND s.first_index = w.first_index "
      "LEFT JOIN jobs AS j ON j.id = w.job AND j.purged = 0");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresLeader>> PostgresLeader::Connect(PostgresOptions options) {
  std::unique_ptr<PostgresLeader> leader(new PostgresLeader(std::move(options)));
  CHAINFLEET_ASSIGN_OR_RETURN(leader->connection_, leader->Open("chainfleet-lease"));
  return leader;
}

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresLeader::Open(const std::string& name) const {
  return PostgresConnection::Open(options_.uri, name, options_.password);
}

absl::StatusOr<PostgresLeader::Election> PostgresLeader::TakeOver() {
  generation_ = -1;
  // Asks for the password, which then serves the reader, too: a command must not run in the transaction below, which
  // may not be idle for long.
  CHAINFLEET_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> writer, Open(kWriterName));
  CHAINFLEET_RETURN_IF_ERROR(connection_->BeginWrite());
  // Do everything that may fail before the commit: a coordinator without a store must not block others as leader.
  absl::StatusOr<Outcome> outcome = Elect(writer->backend_pid());
  if (const absl::Status done = outcome.ok() ? connection_->Commit() : outcome.status(); !done.ok()) {
    connection_->Rollback();
    return done;
  }
  Election election{nullptr, std::move(outcome->leader_address)};
  if (outcome->generation < 0) return election;
  generation_ = outcome->generation;
  StoreOwnership ownership{std::move(outcome->incarnation), generation_, "SELECT generation FROM leader FOR KEY SHARE",
                           FetchSql()};
  election.store = std::make_unique<SqlStateStore>(std::move(writer), std::move(outcome->reader), std::move(ownership));
  return election;
}

absl::StatusOr<PostgresLeader::Outcome> PostgresLeader::Elect(int writer_pid) {
  Outcome outcome{.leader_address = options_.address};
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t version, LockPostgresSchema(connection_.get()));
  // Check the place first: a coordinator that would miss the objects must not replace the leader.
  if (version == kPostgresSchemaVersion) {
    CHAINFLEET_RETURN_IF_ERROR(SqlRows(connection_.get()).CheckKeptHome(options_.home));
  }
  int64_t held = 0;
  if (version > 0) {
    CHAINFLEET_ASSIGN_OR_RETURN(const Leading leading, FindLeader());
    if (leading.alive) return Outcome{.leader_address = leading.address};
    CHAINFLEET_RETURN_IF_ERROR(EndWriter(leading.backend_pid));
    held = leading.generation;
  }
  // Before what may take longer than a password serves.
  CHAINFLEET_ASSIGN_OR_RETURN(outcome.reader, Open("chainfleet-reader"));
  // Only the leader migrates: a newer standby must not change the tables of an older leader.
  CHAINFLEET_RETURN_IF_ERROR(MigratePostgresSchema(version, options_.fresh_incarnation, connection_.get()));
  CHAINFLEET_RETURN_IF_ERROR(SqlRows(connection_.get()).KeepHome(options_.home));
  const bool restored = options_.opening == Opening::kRestored;
  if (restored) {
    CHAINFLEET_RETURN_IF_ERROR(connection_->Execute("SET LOCAL statement_timeout = 0"));  // it writes every chain
    CHAINFLEET_RETURN_IF_ERROR(SqlRows(connection_.get()).Restore(options_.fresh_incarnation));
  }
  outcome.generation = held + 1 + (restored ? kRestoredLeap : 0);
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(connection_.get(),
                                      "UPDATE leader SET generation = ?, address = ?, backend_pid = ?, "
                                      "renewed_at = clock_timestamp() WHERE generation = ?",
                                      outcome.generation, options_.address, writer_pid, held));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<std::string> incarnation,
                              sql::First<std::string>(connection_.get(), "SELECT incarnation FROM store"));
  outcome.incarnation = incarnation.value_or("");
  return outcome;
}

absl::StatusOr<PostgresLeader::Leading> PostgresLeader::FindLeader() {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("SELECT generation, address, backend_pid, renewed_at >= clock_timestamp() - "
                                           "? * INTERVAL '1 millisecond' FROM leader"));
  CHAINFLEET_RETURN_IF_ERROR(s.Bind(absl::ToInt64Milliseconds(options_.timeout)).Step().status());
  return Leading{.generation = s.Int(0), .address = s.Text(1), .backend_pid = s.Int(2), .alive = s.Text(3) == "t"};
}

absl::Status PostgresLeader::EndWriter(int64_t backend_pid) {
  // Match the name, too: after a restart of the database another process may have this pid.
  return sql::Run(connection_.get(),
                  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ? AND application_name = ?",
                  backend_pid, std::string(kWriterName));
}

absl::Status PostgresLeader::Renew() {
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(
      connection_.get(), "UPDATE leader SET renewed_at = clock_timestamp() WHERE generation = ?", generation_));
  if (connection_->changes() == 1) return absl::OkStatus();
  return WithReason(
      absl::UnavailableError(absl::StrCat("another coordinator leads now, this one led as generation ", generation_)),
      "NOT_LEADER");
}

absl::Status PostgresLeader::Resign() {
  return sql::Run(connection_.get(), "UPDATE leader SET renewed_at = '-infinity' WHERE generation = ?", generation_);
}

}  // namespace chainfleet
