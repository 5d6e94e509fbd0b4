// The methods of SqlRows for evaluations and for the findings of ended jobs.
#include <utility>

#include "core/store/state_store/sql_rows.h"

namespace chainfleet {
namespace {

#define CHAINFLEET_EVALUATION_COLUMNS(result)                                                            \
  "sequence, id, job, tenant, request_id, request, state, error_code, error_reason, error, created_ns, " \
  "finished_ns, version, " result

EvaluationRow ReadEvaluation(const SqlStatement& s) {
  EvaluationRow row;
  row.sequence = s.Int(0);
  row.id = s.Text(1);
  row.job = s.Text(2);
  row.tenant = s.Text(3);
  if (!s.IsNull(4)) row.request_id = s.Text(4);
  row.request = s.Text(5);
  row.state = static_cast<EvaluationState>(s.Int(6));
  row.error = absl::Status(static_cast<absl::StatusCode>(s.Int(7)), s.Text(9));
  if (const std::string reason = s.Text(8); !reason.empty()) row.error = WithReason(row.error, reason);
  row.created_at = absl::FromUnixNanos(s.Int(10));
  if (!s.IsNull(11)) row.finished_at = absl::FromUnixNanos(s.Int(11));
  row.version = s.Int(12);
  if (!s.IsNull(13)) row.result = s.Text(13);
  return row;
}

absl::StatusOr<std::optional<EvaluationRow>> ReadOne(SqlStatement s) {
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
  return found ? std::optional(ReadEvaluation(s)) : std::nullopt;
}

// More than any coordinator starts.
constexpr int32_t kMostUnderWay = 1 << 20;

std::optional<std::string> IfAny(const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }

}  // namespace

absl::StatusOr<std::optional<EvaluationRow>> SqlRows::FindEvaluation(const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT " CHAINFLEET_EVALUATION_COLUMNS("result") " FROM evaluations WHERE id = ?"));
  s.Bind(id);
  return ReadOne(std::move(s));
}

absl::StatusOr<std::optional<EvaluationRow>> SqlRows::FindEvaluationOfRequest(const std::string& tenant,
                                                                              const std::string& request_id) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT " CHAINFLEET_EVALUATION_COLUMNS("result") " FROM evaluations "
                                                                             "WHERE tenant = ? AND request_id = ?"));
  s.Bind(tenant).Bind(request_id);
  return ReadOne(std::move(s));
}

absl::StatusOr<bool> SqlRows::InsertEvaluation(EvaluationRow* row) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("INSERT INTO evaluations (id, job, tenant, request_id, request, version, state, created_ns) "
                           "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING sequence"));
  s.Bind(row->id)
      .Bind(row->job)
      .Bind(row->tenant)
      .Bind(IfAny(row->request_id))
      .BindBytes(row->request)
      .Bind(row->version)
      .Bind(static_cast<int64_t>(row->state))
      .Bind(absl::ToUnixNanos(row->created_at));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool inserted, s.Step());
  if (inserted) row->sequence = s.Int(0);
  return inserted;
}

absl::Status SqlRows::UpdateEvaluation(const EvaluationRow& row) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("UPDATE evaluations SET state = ?, error_code = ?, error_reason = ?, "
                                           "error = ?, finished_ns = ?, result = ? WHERE id = ?"));
  s.Bind(static_cast<int64_t>(row.state))
      .Bind(static_cast<int64_t>(row.error.code()))
      .Bind(ReasonOf(row.error))
      .Bind(std::string(row.error.message()))
      .Bind(row.finished_at ? std::optional(absl::ToUnixNanos(*row.finished_at)) : std::nullopt)
      .BindBytes(row.result)
      .Bind(row.id);
  return s.Run();
}

absl::Status SqlRows::DropOldEvaluations(const std::string& job, int32_t kept) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("DELETE FROM evaluations WHERE job = ?1 AND state != ?2 AND sequence NOT IN "
                           "(SELECT sequence FROM evaluations WHERE job = ?1 ORDER BY sequence DESC LIMIT ?3)"));
  return s.Bind(job).Bind(static_cast<int64_t>(EvaluationState::kRunning)).Bind(int64_t{kept}).Run();
}

absl::StatusOr<std::vector<EvaluationRow>> SqlRows::EvaluationsUnderWay(const std::string& job) {
  return ListEvaluations({.job = job, .state = EvaluationState::kRunning, .limit = kMostUnderWay});
}

absl::StatusOr<std::vector<EvaluationRow>> SqlRows::ListEvaluations(const EvaluationQuery& query) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT " CHAINFLEET_EVALUATION_COLUMNS(
          "NULL") " FROM evaluations WHERE "
                  "(CAST(?1 AS TEXT) IS NULL OR tenant = ?1) AND (CAST(?2 AS TEXT) IS NULL OR job = ?2) AND "
                  "(CAST(?3 AS TEXT) IS NULL OR request_id = ?3) AND "
                  "(CAST(?4 AS BIGINT) IS NULL OR state = ?4) AND "
                  "(CAST(?5 AS BIGINT) IS NULL OR sequence < ?5) ORDER BY sequence DESC LIMIT ?6"));
  s.Bind(query.tenant)
      .Bind(IfAny(query.job))
      .Bind(IfAny(query.request_id))
      .Bind(query.state ? std::optional(static_cast<int64_t>(*query.state)) : std::nullopt)
      .Bind(query.before > 0 ? std::optional(query.before) : std::nullopt)
      .Bind(int64_t{query.limit});
  std::vector<EvaluationRow> rows;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return rows;
    rows.push_back(ReadEvaluation(s));
  }
}

absl::Status SqlRows::PutFinding(const std::string& job, const std::string& part, const std::string& body) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("INSERT INTO findings (job, part, body) VALUES (?, ?, ?) "
                                                   "ON CONFLICT (job, part) DO UPDATE SET body = excluded.body"));
  return s.Bind(job).Bind(part).BindBytes(body).Run();
}

absl::StatusOr<std::optional<std::string>> SqlRows::FindFinding(const std::string& job, const std::string& part) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT body FROM findings WHERE job = ? AND part = ?"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(job).Bind(part).Step());
  return found ? std::optional(s.Text(0)) : std::nullopt;
}

}  // namespace chainfleet
