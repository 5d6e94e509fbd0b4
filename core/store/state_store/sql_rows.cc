#include "core/store/state_store/sql_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/store/state_store/sql_query.h"

namespace chainfleet {
namespace {

// The columns of a segment. "record" is read first: it replaces all others.
struct SegmentRow : SegmentRecord {
  const SegmentRecord& record() const { return *this; }
  SegmentRecord& record() { return *this; }
  static void Fields(auto& self, auto&& visit) {
    visit("record", self.record());
    visit("job", self.chain.job);
    visit("chain", self.chain.index);
    visit("corrupt", self.corrupt);
    visit("deleted", self.deleted);
  }
};

template <typename... Values>
absl::StatusOr<std::vector<SegmentRecord>> Segments(SqlConnection* connection, const std::string& from,
                                                    const Values&... values) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<SegmentRow> rows,
                              sql::All<SegmentRow>(connection, sql::Select<SegmentRow>(from), values...));
  return std::vector<SegmentRecord>(std::move_iterator(rows.begin()), std::move_iterator(rows.end()));
}

// Separated by blanks.
std::string KeysOfFiles(const JobPlan& plan) {
  std::string keys;
  for (const StoredModel* file : FilesOf(plan)) absl::StrAppend(&keys, keys.empty() ? "" : " ", ContentKey(*file));
  return keys;
}

}  // namespace

absl::StatusOr<std::optional<JobRow>> SqlRows::FindJob(const std::string& id) {
  return sql::First<JobRow>(connection_, sql::Select<JobRow>("jobs WHERE id = ? AND purged = 0"), id);
}

absl::StatusOr<std::optional<JobIntent>> SqlRows::FindIntent(const std::string& id) {
  return sql::First<JobIntent>(connection_, "SELECT intent FROM jobs WHERE id = ? AND purged = 0", id);
}

absl::StatusOr<std::optional<std::string>> SqlRows::FindJobOfRequest(const std::string& tenant,
                                                                     const std::string& request_id) {
  return sql::First<std::string>(connection_, "SELECT id FROM jobs WHERE tenant = ? AND request_id = ?", tenant,
                                 request_id);
}

absl::StatusOr<bool> SqlRows::InsertJob(JobRow* row) {
  const JobPlan& plan = *row->plan;
  CHAINFLEET_ASSIGN_OR_RETURN(
      const std::optional<int64_t> sequence,
      sql::First<int64_t>(connection_,
                          "INSERT INTO jobs (id, tenant, request_id, dataset, module, plan, intent, created_ns, "
                          "finished_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING sequence",
                          row->id, row->tenant, sql::IfAny(row->request_id),
                          sql::IfAny(plan.dataset ? ContentKey(*plan.dataset) : ""), sql::IfAny(KeysOfFiles(plan)),
                          plan, row->intent, row->created_at, row->finished_at));
  if (sequence) row->sequence = *sequence;
  return sequence.has_value();
}

absl::Status SqlRows::UpdateJob(const JobRow& row) {
  return sql::Run(connection_, "UPDATE jobs SET intent = ?, finished_ns = ?, stopped = ? WHERE id = ?", row.intent,
                  row.finished_at, row.stopped, row.id);
}

absl::Status SqlRows::ReplacePlan(const JobRow& row) {
  return sql::Run(connection_, "UPDATE jobs SET plan = ?, asked_chains = ? WHERE id = ?", *row.plan, row.asked_chains,
                  row.id);
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
    CHAINFLEET_RETURN_IF_ERROR(sql::Run(connection_, sql, page.job, page.page));
    if (connection_->changes() == page.page) return true;
  }
  // A plan may have megabytes, and nothing reads that of a purged job.
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(
      connection_, "UPDATE jobs SET purged = 1, plan = '{}', dataset = NULL, module = NULL WHERE id = ?", page.job));
  return false;
}

absl::Status SqlRows::DeleteChains(const std::string& job) {
  return sql::Run(connection_, "DELETE FROM chains WHERE job = ?", job);
}

absl::StatusOr<bool> SqlRows::IsJobName(const std::string& tenant, const std::string& name) {
  // An id is a name with a suffix of 7 characters.
  return sql::Exists(connection_,
                     "SELECT 1 FROM jobs WHERE tenant = ?1 AND purged = 0 AND intent != ?2 AND "
                     "(id = ?3 OR substr(id, 1, length(id) - 7) = ?3) LIMIT 1",
                     tenant, JobIntent::kDelete, name);
}

absl::StatusOr<std::vector<RetiredName>> SqlRows::ListRetiredNames() {
  return sql::All<RetiredName>(connection_,
                               "SELECT tenant, substr(id, 1, length(id) - 7), MAX(sequence) FROM jobs WHERE purged = 1 "
                               "GROUP BY 1, 2 ORDER BY 1, 2");
}

absl::StatusOr<std::optional<ChainRow>> SqlRows::FindChain(const ChainId& id) {
  static const std::string kSql = sql::Select<ChainRow>("chains WHERE job = ? AND chain = ?");
  return sql::First<ChainRow>(connection_, kSql, id);
}

absl::StatusOr<std::vector<ChainRow>> SqlRows::ListChains(const std::string& job) {
  return sql::All<ChainRow>(connection_, sql::Select<ChainRow>("chains WHERE job = ? ORDER BY chain"), job);
}

absl::StatusOr<int64_t> SqlRows::CountUnfinishedChains(const std::string& job) {
  return sql::Number(connection_, "SELECT COUNT(*) FROM chains WHERE job = ? AND state IN (?, ?)", job,
                     ChainState::kPending, ChainState::kLeased);
}

absl::Status SqlRows::PutChain(const ChainRow& row) {
  static const std::string kSql = sql::Insert<ChainRow>("chains", 2);
  return sql::RunLater(connection_, kSql, row);
}

absl::StatusOr<std::optional<ResumePoint>> SqlRows::FindResumePoint(const ChainId& id) {
  return sql::First<ResumePoint>(
      connection_, "SELECT step, bytes, object, sha256, proof FROM resume_points WHERE job = ? AND chain = ?", id);
}

absl::StatusOr<std::optional<BlobRef>> SqlRows::FindResumeObject(const ChainId& id) {
  return sql::First<BlobRef>(connection_,
                             "SELECT object FROM resume_points WHERE job = ? AND chain = ? AND object IS NOT NULL", id);
}

absl::Status SqlRows::PutResumePoint(const ChainId& id, const ResumePoint& point) {
  static const std::string kSql =
      sql::InsertStatement("resume_points", {"job", "chain", "step", "sha256", "bytes", "object", "proof"}, 2);
  return sql::RunLater(connection_, kSql, id, point.step, point.sha256, sql::Bytes{point.inline_bytes}, point.object,
                       point.proof);
}

absl::StatusOr<std::optional<DigestHex>> SqlRows::FindDigest(const ChainId& id, int64_t first_index) {
  return sql::First<DigestHex>(
      connection_, "SELECT digest FROM segments WHERE job = ? AND chain = ? AND first_index = ?", id, first_index);
}

absl::StatusOr<std::optional<SegmentRecord>> SqlRows::FindNewestSegment(const ChainId& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      std::vector<SegmentRecord> found,
      Segments(connection_, "segments WHERE job = ? AND chain = ? ORDER BY first_index DESC LIMIT 1", id));
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

absl::Status SqlRows::InsertSegment(const SegmentRecord& record) {
  const Segment& segment = record.segment;
  return sql::RunLater(
      connection_, "INSERT INTO segments (job, chain, first_index, digest, object, record) VALUES (?, ?, ?, ?, ?, ?)",
      record.chain, segment.first_index, segment.digest, segment.object.name, record);
}

absl::StatusOr<bool> SqlRows::MarkCorrupt(const std::string& job, const std::string& object, bool corrupt) {
  CHAINFLEET_RETURN_IF_ERROR(
      sql::Run(connection_, "UPDATE segments SET corrupt = ? WHERE object = ? AND job = ?", corrupt, object, job));
  return connection_->changes() > 0;
}

// Reads in pages: PostgreSQL fetches all rows of a statement at once and ends it after a few seconds, and ends a
// transaction that is idle for so long, for example while a plan of megabytes is decoded. The caller's transaction
// (StateStore::Load) makes all pages see one state.
absl::StatusOr<std::vector<JobRow>> SqlRows::ListJobs() {
  constexpr int64_t kPage = 16;
  static const std::string kSql =
      sql::Select<JobRow>("jobs WHERE purged = 0 AND sequence > ? ORDER BY sequence LIMIT ?");
  std::vector<JobRow> all;
  int64_t last = 0;  // the first sequence is 1
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<JobRow> page, sql::All<JobRow>(connection_, kSql, last, kPage));
    for (JobRow& row : page) all.push_back(std::move(row));
    if (static_cast<int64_t>(page.size()) < kPage) return all;
    last = all.back().sequence;
  }
}

absl::StatusOr<std::vector<SegmentRecord>> SqlRows::ListSegments(const StateStore::SegmentQuery& query) {
  // One range of the index, for a single chain too: the segments of the others are not read.
  const auto [chain, first_index] =
      std::max(std::pair(query.after_chain, query.after_first_index), std::pair(query.chain.value_or(-1), int64_t{-1}));
  return Segments(connection_,
                  "segments WHERE job = ?1 AND (chain, first_index) > (?2, ?3) AND chain <= ?4 AND deleted <= ?5 "
                  "ORDER BY chain, first_index LIMIT ?6",
                  query.job, chain, first_index, query.chain.value_or(std::numeric_limits<int32_t>::max()),
                  !query.live_only, query.limit);
}

absl::StatusOr<std::vector<ResumeRow>> SqlRows::ListResumePoints(const std::string& job) {
  return sql::All<ResumeRow>(connection_,
                             "SELECT c.chain, c.last_digest, r.step, r.sha256, r.proof FROM chains AS c JOIN "
                             "resume_points AS r ON r.job = c.job AND r.chain = c.chain WHERE c.job = ?",
                             job);
}

absl::StatusOr<std::optional<SegmentRecord>> SqlRows::FindSegment(const std::string& job, const std::string& object) {
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<SegmentRecord> found,
                              Segments(connection_, "segments WHERE object = ? AND job = ? LIMIT 1", object, job));
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

absl::StatusOr<std::vector<SegmentRecord>> SqlRows::ListCorrupt(const StateStore::SegmentCursor& after, int32_t limit) {
  return Segments(connection_,
                  "segments WHERE corrupt = 1 AND deleted = 0 AND (job, chain, first_index) > (?, ?, ?) "
                  "ORDER BY job, chain, first_index LIMIT ?",
                  after.chain, after.first_index, limit);
}

absl::StatusOr<int64_t> SqlRows::CountCorrupt() {
  return sql::Number(connection_, "SELECT COUNT(*) FROM segments WHERE corrupt = 1 AND deleted = 0");
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
      const std::vector<std::string> objects,
      sql::All<std::string>(connection_,
                            "SELECT object FROM segments WHERE job = ?1 AND chain = ?2 AND deleted = 0 "
                            "UNION ALL SELECT object FROM expired WHERE job = ?1 AND chain = ?2",
                            chain));
  references.objects.insert(objects.begin(), objects.end());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<BlobRef> resume, FindResumeObject(chain));
  if (resume) references.objects.insert(resume->name);
  return references;
}

}  // namespace chainfleet
