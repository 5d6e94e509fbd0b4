#include "core/store/state_store/sql_rows.h"

#include <memory>
#include <utility>

#include "core/store/state_store/record_json.h"

namespace chainfleet {
namespace {

#define CHAINFLEET_JOB_COLUMNS \
  "sequence, id, request_id, plan, intent, created_ns, finished_ns, tenant, stopped, asked_chains"
#define CHAINFLEET_CHAIN_COLUMNS CHAINFLEET_CHAIN_COLUMNS_OF("")

absl::StatusOr<JobRow> ReadJob(const SqlStatement& s) {
  JobRow row;
  row.sequence = s.Int(0);
  row.id = s.Text(1);
  row.request_id = s.Text(2);
  CHAINFLEET_ASSIGN_OR_RETURN(JobPlan plan, DecodeJobPlan(s.Text(3)));
  row.plan = std::make_shared<const JobPlan>(std::move(plan));
  row.intent = static_cast<JobIntent>(s.Int(4));
  row.created_at = absl::FromUnixNanos(s.Int(5));
  if (!s.IsNull(6)) row.finished_at = absl::FromUnixNanos(s.Int(6));
  row.tenant = s.Text(7);
  CHAINFLEET_ASSIGN_OR_RETURN(row.stopped, DecodeStopped(s.Text(8)));
  row.asked_chains = static_cast<int32_t>(s.Int(9));
  return row;
}

// Reads the columns job, chain, record, corrupt, deleted.
absl::StatusOr<SegmentRecord> ReadSegment(const SqlStatement& s) {
  CHAINFLEET_ASSIGN_OR_RETURN(SegmentRecord record, DecodeSegmentRecord(s.Text(2)));
  record.chain = {s.Text(0), static_cast<int32_t>(s.Int(1))};
  record.corrupt = s.Int(3) != 0;
  record.deleted = s.Int(4) != 0;
  return record;
}

std::optional<int64_t> Nanos(const std::optional<absl::Time>& time) {
  return time ? std::optional(absl::ToUnixNanos(*time)) : std::nullopt;
}

}  // namespace

ChainRow SqlRows::ReadChain(const SqlStatement& s) {
  ChainRow row;
  row.id = {s.Text(0), static_cast<int32_t>(s.Int(1))};
  row.state = static_cast<ChainState>(s.Int(2));
  row.lease_epoch = s.Int(3);
  row.worker = s.Text(4);
  row.incarnation = s.Text(5);
  row.lease_committed = s.Int(6) != 0;
  row.attempts = static_cast<int32_t>(s.Int(7));
  row.step = s.Int(8);
  row.num_draws = s.Int(9);
  row.last_digest = s.Text(10);
  row.resume_sha256 = s.Text(11);
  row.reason = s.Text(12);
  row.crashes = static_cast<int32_t>(s.Int(13));
  return row;
}

absl::StatusOr<ResumePoint> SqlRows::ReadResumePoint(const SqlStatement& s, int column) {
  ResumePoint point;
  point.step = s.Int(column);
  point.sha256 = s.Text(column + 1);
  point.inline_bytes = s.Text(column + 2);
  if (!s.IsNull(column + 3)) {
    CHAINFLEET_ASSIGN_OR_RETURN(point.object, DecodeBlobRef(s.Text(column + 3)));
  }
  return point;
}

absl::StatusOr<std::optional<JobRow>> SqlRows::FindJob(const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("SELECT " CHAINFLEET_JOB_COLUMNS " FROM jobs WHERE id = ? AND purged = 0"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(id).Step());
  if (!found) return std::optional<JobRow>();
  CHAINFLEET_ASSIGN_OR_RETURN(JobRow row, ReadJob(s));
  return std::optional<JobRow>(std::move(row));
}

absl::StatusOr<std::optional<JobIntent>> SqlRows::FindIntent(const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT intent FROM jobs WHERE id = ? AND purged = 0"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(id).Step());
  return found ? std::optional(static_cast<JobIntent>(s.Int(0))) : std::nullopt;
}

absl::StatusOr<std::optional<std::string>> SqlRows::FindJobOfRequest(const std::string& tenant,
                                                                     const std::string& request_id) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT id FROM jobs WHERE tenant = ? AND request_id = ?"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(tenant).Bind(request_id).Step());
  return found ? std::optional(s.Text(0)) : std::nullopt;
}

absl::StatusOr<bool> SqlRows::InsertJob(JobRow* row) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare(
                          "INSERT INTO jobs (id, tenant, request_id, dataset, module, plan, intent, created_ns, "
                          "finished_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING sequence"));
  const JobPlan& plan = *row->plan;
  s.Bind(row->id)
      .Bind(row->tenant)
      .Bind(row->request_id.empty() ? std::nullopt : std::optional(row->request_id))
      .Bind(plan.dataset ? std::optional(plan.dataset->name) : std::nullopt)
      .Bind(plan.module ? std::optional(plan.module->name) : std::nullopt)
      .Bind(EncodeJobPlan(plan))
      .Bind(static_cast<int64_t>(row->intent))
      .Bind(absl::ToUnixNanos(row->created_at))
      .Bind(Nanos(row->finished_at));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool inserted, s.Step());
  if (inserted) row->sequence = s.Int(0);
  return inserted;
}

absl::Status SqlRows::UpdateJob(const JobRow& row) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("UPDATE jobs SET intent = ?, finished_ns = ?, stopped = ? "
                                                   "WHERE id = ?"));
  return s.Bind(static_cast<int64_t>(row.intent))
      .Bind(Nanos(row.finished_at))
      .Bind(EncodeStopped(row.stopped))
      .Bind(row.id)
      .Run();
}

absl::Status SqlRows::ReplacePlan(const JobRow& row) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("UPDATE jobs SET plan = ?, asked_chains = ? WHERE id = ?"));
  return s.Bind(EncodeJobPlan(*row.plan)).Bind(int64_t{row.asked_chains}).Bind(row.id).Run();
}

absl::StatusOr<bool> SqlRows::PurgeJob(const change::PurgeJob& page) {
  for (const char* sql :
       {"DELETE FROM segments WHERE job = ?1 AND (chain, first_index) IN (SELECT chain, first_index FROM segments "
        "WHERE job = ?1 LIMIT ?2)",
        "DELETE FROM expired WHERE ticket IN (SELECT ticket FROM expired WHERE job = ? LIMIT ?)",
        "DELETE FROM resume_points WHERE job = ?1 AND chain IN (SELECT chain FROM resume_points WHERE job = ?1 LIMIT "
        "?2)",
        "DELETE FROM evaluations WHERE sequence IN (SELECT sequence FROM evaluations WHERE job = ? LIMIT ?)",
        "DELETE FROM findings WHERE job = ?1 AND part IN (SELECT part FROM findings WHERE job = ?1 LIMIT ?2)",
        "DELETE FROM snapshots WHERE job = ?1 AND number IN (SELECT number FROM snapshots WHERE job = ?1 LIMIT ?2)"}) {
    CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare(sql));
    CHAINFLEET_RETURN_IF_ERROR(s.Bind(page.job).Bind(int64_t{page.page}).Run());
    if (connection_->changes() == page.page) return true;
  }
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("UPDATE jobs SET purged = 1 WHERE id = ?"));
  CHAINFLEET_RETURN_IF_ERROR(s.Bind(page.job).Run());
  return false;
}

absl::Status SqlRows::DeleteChains(const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("DELETE FROM chains WHERE job = ?"));
  return s.Bind(job).Run();
}

absl::StatusOr<bool> SqlRows::IsJobName(const std::string& tenant, const std::string& name) {
  // An id is a name with a suffix of 7 characters.
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("SELECT 1 FROM jobs WHERE tenant = ?1 AND purged = 0 AND intent != ?2 AND "
                                           "(id = ?3 OR substr(id, 1, length(id) - 7) = ?3) LIMIT 1"));
  return s.Bind(tenant).Bind(static_cast<int64_t>(JobIntent::kDelete)).Bind(name).Step();
}

absl::StatusOr<std::vector<RetiredName>> SqlRows::ListRetiredNames() {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("SELECT tenant, substr(id, 1, length(id) - 7), MAX(sequence) FROM jobs "
                                           "WHERE purged = 1 GROUP BY 1, 2 ORDER BY 1, 2"));
  std::vector<RetiredName> names;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return names;
    names.push_back({s.Text(0), s.Text(1), s.Int(2)});
  }
}

absl::StatusOr<std::optional<ChainRow>> SqlRows::FindChain(const ChainId& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT " CHAINFLEET_CHAIN_COLUMNS
                                                                   " FROM chains WHERE job = ? AND chain = ?"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(id.job).Bind(int64_t{id.index}).Step());
  return found ? std::optional(ReadChain(s)) : std::nullopt;
}

absl::StatusOr<std::vector<ChainRow>> SqlRows::ListChains(const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT " CHAINFLEET_CHAIN_COLUMNS
                                                                   " FROM chains WHERE job = ? ORDER BY chain"));
  s.Bind(job);
  std::vector<ChainRow> rows;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return rows;
    rows.push_back(ReadChain(s));
  }
}

absl::StatusOr<int64_t> SqlRows::CountUnfinishedChains(const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT COUNT(*) FROM chains WHERE job = ? AND state IN (?, ?)"));
  s.Bind(job).Bind(static_cast<int64_t>(ChainState::kPending)).Bind(static_cast<int64_t>(ChainState::kLeased));
  CHAINFLEET_RETURN_IF_ERROR(s.Step().status());
  return s.Int(0);
}

absl::Status SqlRows::PutChain(const ChainRow& row) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare(
          "INSERT INTO chains (" CHAINFLEET_CHAIN_COLUMNS
          ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job, chain) DO UPDATE SET "
          "state = excluded.state, lease_epoch = excluded.lease_epoch, worker = excluded.worker, "
          "incarnation = excluded.incarnation, lease_committed = excluded.lease_committed, "
          "attempts = excluded.attempts, step = excluded.step, num_draws = excluded.num_draws, "
          "last_digest = excluded.last_digest, resume_sha256 = excluded.resume_sha256, reason = excluded.reason, "
          "crashes = excluded.crashes"));
  return s.Bind(row.id.job)
      .Bind(int64_t{row.id.index})
      .Bind(static_cast<int64_t>(row.state))
      .Bind(row.lease_epoch)
      .Bind(row.worker)
      .Bind(row.incarnation)
      .Bind(int64_t{row.lease_committed})
      .Bind(int64_t{row.attempts})
      .Bind(row.step)
      .Bind(row.num_draws)
      .Bind(row.last_digest)
      .Bind(row.resume_sha256)
      .Bind(row.reason)
      .Bind(int64_t{row.crashes})
      .RunLater();
}

absl::StatusOr<std::optional<ResumePoint>> SqlRows::FindResumePoint(const ChainId& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT step, sha256, bytes, object FROM resume_points WHERE job = ? AND chain = ?"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(id.job).Bind(int64_t{id.index}).Step());
  if (!found) return std::optional<ResumePoint>();
  return ReadResumePoint(s, 0);
}

absl::StatusOr<std::optional<BlobRef>> SqlRows::FindResumeObject(const ChainId& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT object FROM resume_points WHERE job = ? AND chain = ?"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(id.job).Bind(int64_t{id.index}).Step());
  if (!found || s.IsNull(0)) return std::optional<BlobRef>();
  return DecodeBlobRef(s.Text(0));
}

absl::Status SqlRows::PutResumePoint(const ChainId& id, const ResumePoint& point) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare(
          "INSERT INTO resume_points (job, chain, step, sha256, bytes, object) VALUES (?, ?, ?, ?, ?, ?) "
          "ON CONFLICT (job, chain) DO UPDATE SET step = excluded.step, sha256 = excluded.sha256, "
          "bytes = excluded.bytes, object = excluded.object"));
  return s.Bind(id.job)
      .Bind(int64_t{id.index})
      .Bind(point.step)
      .Bind(point.sha256)
      .BindBytes(point.inline_bytes)
      .Bind(point.object ? std::optional(EncodeBlobRef(*point.object)) : std::nullopt)
      .RunLater();
}

absl::StatusOr<std::optional<DigestHex>> SqlRows::FindDigest(const ChainId& id, int64_t first_index) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT digest FROM segments WHERE job = ? AND chain = ? AND first_index = ?"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(id.job).Bind(int64_t{id.index}).Bind(first_index).Step());
  return found ? std::optional(s.Text(0)) : std::nullopt;
}

absl::Status SqlRows::InsertSegment(const SegmentRecord& record) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare(
          "INSERT INTO segments (job, chain, first_index, digest, object, record) VALUES (?, ?, ?, ?, ?, ?)"));
  return s.Bind(record.chain.job)
      .Bind(int64_t{record.chain.index})
      .Bind(record.segment.first_index)
      .Bind(record.segment.digest)
      .Bind(record.segment.object.name)
      .Bind(EncodeSegmentRecord(record))
      .RunLater();
}

absl::StatusOr<bool> SqlRows::MarkCorrupt(const std::string& job, const std::string& object, bool corrupt) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("UPDATE segments SET corrupt = ? WHERE object = ? AND job = ?"));
  CHAINFLEET_RETURN_IF_ERROR(s.Bind(int64_t{corrupt}).Bind(object).Bind(job).Run());
  return connection_->changes() > 0;
}

absl::StatusOr<std::vector<JobRow>> SqlRows::ListJobs() {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT " CHAINFLEET_JOB_COLUMNS
                                                                   " FROM jobs WHERE purged = 0 ORDER BY sequence"));
  std::vector<JobRow> rows;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return rows;
    CHAINFLEET_ASSIGN_OR_RETURN(JobRow row, ReadJob(s));
    rows.push_back(std::move(row));
  }
}

absl::StatusOr<std::vector<SegmentRecord>> SqlRows::ListSegments(const StateStore::SegmentQuery& query) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT job, chain, record, corrupt, deleted FROM segments WHERE job = ?1 AND "
                           "(chain, first_index) > (?2, ?3) AND (CAST(?4 AS INTEGER) IS NULL OR chain = ?4) "
                           "AND deleted <= ?5 ORDER BY chain, first_index LIMIT ?6"));
  s.Bind(query.job).Bind(int64_t{query.after_chain}).Bind(query.after_first_index);
  s.Bind(query.chain ? std::optional(int64_t{*query.chain}) : std::nullopt);
  s.Bind(int64_t{!query.live_only}).Bind(int64_t{query.limit});
  return Segments(std::move(s));
}

absl::StatusOr<std::optional<SegmentRecord>> SqlRows::FindSegment(const std::string& job, const std::string& object) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT job, chain, record, corrupt, deleted FROM segments "
                                                   "WHERE object = ? AND job = ? LIMIT 1"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(object).Bind(job).Step());
  if (!found) return std::optional<SegmentRecord>();
  CHAINFLEET_ASSIGN_OR_RETURN(SegmentRecord record, ReadSegment(s));
  return std::optional<SegmentRecord>(std::move(record));
}

absl::StatusOr<std::vector<SegmentRecord>> SqlRows::ListCorrupt(const StateStore::SegmentCursor& after, int32_t limit) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT job, chain, record, corrupt, deleted FROM segments "
                                                   "WHERE corrupt = 1 AND deleted = 0 AND (job, chain, first_index) > "
                                                   "(?, ?, ?) ORDER BY job, chain, first_index LIMIT ?"));
  s.Bind(after.chain.job).Bind(int64_t{after.chain.index}).Bind(after.first_index).Bind(int64_t{limit});
  return Segments(std::move(s));
}

absl::StatusOr<int64_t> SqlRows::CountCorrupt() {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT COUNT(*) FROM segments WHERE corrupt = 1 AND deleted = 0"));
  CHAINFLEET_RETURN_IF_ERROR(s.Step().status());
  return s.Int(0);
}

absl::StatusOr<bool> SqlRows::MayCommit(const ChainId& chain, int64_t lease_epoch) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<ChainRow> row, FindChain(chain));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<JobIntent> intent, FindIntent(chain.job));
  return row && intent && !IsFinal(row->state) && row->lease_epoch <= lease_epoch;
}

absl::StatusOr<ChainReferences> SqlRows::ReferencesOfChain(const ChainId& chain) {
  ChainReferences references;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<ChainRow> row, FindChain(chain));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<JobIntent> intent, FindIntent(chain.job));
  if (row) references.lease_epoch = row->lease_epoch;
  references.is_final = !row || !intent || IsFinal(row->state);
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("SELECT object FROM segments WHERE job = ?1 AND chain = ?2 AND deleted = 0 "
                                           "UNION ALL SELECT object FROM expired WHERE job = ?1 AND chain = ?2"));
  s.Bind(chain.job).Bind(int64_t{chain.index});
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> objects, Texts(std::move(s)));
  references.objects.insert(objects.begin(), objects.end());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<ResumePoint> point, FindResumePoint(chain));
  if (point && point->object) references.objects.insert(point->object->name);
  return references;
}

absl::StatusOr<std::vector<SegmentRecord>> SqlRows::Segments(SqlStatement statement) {
  std::vector<SegmentRecord> records;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return records;
    CHAINFLEET_ASSIGN_OR_RETURN(SegmentRecord record, ReadSegment(statement));
    records.push_back(std::move(record));
  }
}

absl::StatusOr<std::vector<std::string>> SqlRows::Texts(SqlStatement statement) {
  std::vector<std::string> texts;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return texts;
    texts.push_back(statement.Text(0));
  }
}

}  // namespace chainfleet
