// The methods of SqlRows for evaluations and for the findings of ended jobs.
#include "absl/strings/str_replace.h"
#include "core/store/state_store/sql_query.h"
#include "core/store/state_store/sql_rows.h"

namespace chainfleet {
namespace {

// More than any coordinator starts.
constexpr int32_t kMostUnderWay = 1 << 20;

}  // namespace

absl::StatusOr<std::optional<EvaluationRow>> SqlRows::FindEvaluation(const std::string& id,
                                                                     const std::optional<std::string>& tenant) {
  static const std::string kSql =
      sql::Select<EvaluationRow>("evaluations WHERE id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR tenant = ?2)");
  return sql::First<EvaluationRow>(connection_, kSql, id, tenant);
}

absl::StatusOr<std::optional<EvaluationRow>> SqlRows::FindEvaluationOfRequest(const std::string& tenant,
                                                                              const std::string& request_id) {
  return sql::First<EvaluationRow>(
      connection_, sql::Select<EvaluationRow>("evaluations WHERE tenant = ? AND request_id = ?"), tenant, request_id);
}

absl::StatusOr<bool> SqlRows::InsertEvaluation(EvaluationRow* row) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      const std::optional<int64_t> sequence,
      sql::First<int64_t>(connection_,
                          "INSERT INTO evaluations (id, job, tenant, request_id, request, version, state, created_ns) "
                          "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING sequence",
                          row->id, row->job, row->tenant, sql::IfAny(row->request_id), sql::Bytes{row->request},
                          row->version, row->state, row->created_at));
  if (sequence) row->sequence = *sequence;
  return sequence.has_value();
}

absl::Status SqlRows::UpdateEvaluation(const EvaluationRow& row) {
  return sql::Run(connection_,
                  "UPDATE evaluations SET state = ?, error_code = ?, error_reason = ?, error = ?, finished_ns = ?, "
                  "result = ? WHERE id = ?",
                  row.state, row.error, row.finished_at, sql::Bytes{row.result}, row.id);
}

absl::Status SqlRows::DropOldEvaluations(const std::string& job, int32_t kept) {
  return sql::Run(connection_,
                  "DELETE FROM evaluations WHERE job = ?1 AND state != ?2 AND sequence NOT IN "
                  "(SELECT sequence FROM evaluations WHERE job = ?1 ORDER BY sequence DESC LIMIT ?3)",
                  job, EvaluationState::kRunning, kept);
}

absl::StatusOr<std::vector<EvaluationRow>> SqlRows::EvaluationsUnderWay(const std::string& job) {
  return ListEvaluations({.job = job, .state = EvaluationState::kRunning, .limit = kMostUnderWay});
}

absl::StatusOr<std::vector<EvaluationRow>> SqlRows::ListEvaluations(const EvaluationQuery& query) {
  static const std::string kSql = absl::StrReplaceAll(
      sql::Select<EvaluationRow>(
          "evaluations WHERE "
          "(CAST(?1 AS TEXT) IS NULL OR tenant = ?1) AND (CAST(?2 AS TEXT) IS NULL OR job = ?2) AND "
          "(CAST(?3 AS TEXT) IS NULL OR request_id = ?3) AND "
          "(CAST(?4 AS BIGINT) IS NULL OR state = ?4) AND "
          "(CAST(?5 AS BIGINT) IS NULL OR sequence < ?5) ORDER BY sequence DESC LIMIT ?6"),
      {{", result", ", NULL"}});
  return sql::All<EvaluationRow>(connection_, kSql, query.tenant, sql::IfAny(query.job), sql::IfAny(query.request_id),
                                 query.state, query.before > 0 ? std::optional(query.before) : std::nullopt,
                                 query.limit);
}

absl::Status SqlRows::PutFinding(const std::string& job, const std::string& part, const std::string& body) {
  static const std::string kSql = sql::InsertStatement("findings", {"job", "part", "body"}, 2);
  return sql::Run(connection_, kSql, job, part, sql::Bytes{body});
}

absl::StatusOr<std::optional<std::string>> SqlRows::FindFinding(const std::string& job, const std::string& part) {
  return sql::First<std::string>(connection_, "SELECT body FROM findings WHERE job = ? AND part = ?", job, part);
}

absl::StatusOr<std::vector<FindingName>> SqlRows::ListFindings(const FindingName& after, int32_t limit) {
  static const std::string kSql =
      sql::Select<FindingName>("findings WHERE (job, part) > (?, ?) ORDER BY job, part LIMIT ?");
  return sql::All<FindingName>(connection_, kSql, after, limit);
}

}  // namespace chainfleet
