#include "tests/support/rows_in_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/mutex.h"
#include "core/domain/no_such.h"
#include "core/store/state_store/apply_change.h"
#include "core/store/state_store/apply_versions.h"
#include "tests/support/memory_contents.h"

namespace chainfleet {
namespace {

using memory::Find;

struct MemoryJob {
  JobRow row;
  bool purged = false;
  std::map<int64_t, Version> versions;
  int64_t last_version = 0;
};

struct MemoryExpired {
  ChainId chain;
  std::string object;
};

using SegmentKey = std::pair<ChainId, int64_t>;

// The draws and resume points that workers have committed.
class MemoryPaths : public memory::Contents {
 public:
  absl::StatusOr<std::optional<ResumePoint>> FindResumePoint(const ChainId& id) override {
    return Find(resume_points, id);
  }
  absl::StatusOr<std::optional<BlobRef>> FindResumeObject(const ChainId& id) override {
    const auto found = resume_points.find(id);
    return found == resume_points.end() ? std::nullopt : found->second.object;
  }
  absl::Status PutResumePoint(const ChainId& id, const ResumePoint& point) override {
    resume_points[id] = point;
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<SegmentRecord>> FindNewestSegment(const ChainId& id) override {
    const auto after = segments.upper_bound({id, INT64_MAX});
    const bool has_any = after != segments.begin() && std::prev(after)->first.first == id;
    return has_any ? std::optional(std::prev(after)->second) : std::nullopt;
  }
  absl::StatusOr<std::optional<DigestHex>> FindDigest(const ChainId& id, int64_t first_index) override {
    const auto record = Find(segments, SegmentKey(id, first_index));
    return record ? std::optional(record->segment.digest) : std::nullopt;
  }
  absl::Status InsertSegment(const SegmentRecord& record) override {
    segments[{record.chain, record.segment.first_index}] = record;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> MarkCorrupt(const std::string& job, const std::string& object, bool corrupt) override {
    bool found = false;
    for (auto& [key, record] : segments) {
      if (key.first.job != job || record.segment.object.name != object) continue;
      record.corrupt = corrupt;
      found = true;
    }
    return found;
  }

  std::map<ChainId, ResumePoint> resume_points;
  std::map<SegmentKey, SegmentRecord> segments;
};

// Writes go straight to the tables: ApplyChange rejects before it writes, and memory never fails.
class MemoryRows final : public MemoryPaths {
 public:
  absl::StatusOr<std::optional<JobRow>> FindJob(const std::string& id) override {
    const auto found = jobs.find(id);
    if (found == jobs.end() || found->second.purged) return std::optional<JobRow>();
    return std::optional(found->second.row);
  }
  absl::StatusOr<std::optional<JobIntent>> FindIntent(const std::string& id) override {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<JobRow> row, FindJob(id));
    return row ? std::optional(row->intent) : std::nullopt;
  }
  absl::StatusOr<std::optional<std::string>> FindJobOfRequest(const std::string& tenant,
                                                              const std::string& request_id) override {
    for (const auto& [id, job] : jobs) {
      if (job.row.tenant == tenant && job.row.request_id == request_id) return std::optional(id);
    }
    return std::optional<std::string>();
  }
  absl::StatusOr<bool> InsertJob(JobRow* row) override {
    row->sequence = static_cast<int64_t>(jobs.size()) + 1;
    return jobs.emplace(row->id, MemoryJob{*row, false, {}, 0}).second;
  }
  absl::Status UpdateJob(const JobRow& row) override {
    jobs.at(row.id).row = row;
    return absl::OkStatus();
  }
  absl::Status ReplacePlan(const JobRow& row) override { return UpdateJob(row); }
  absl::StatusOr<bool> IsJobName(const std::string& tenant, const std::string& name) override {
    return std::ranges::any_of(jobs, [&](const auto& entry) {
      const JobRow& row = entry.second.row;
      return row.tenant == tenant && row.intent != JobIntent::kDelete &&
             (row.id == name || row.plan->spec.name == name);
    });
  }
  absl::StatusOr<bool> PurgeJob(const change::PurgeJob& page) override {
    const std::string& id = page.job;
    const auto first = segments.lower_bound({{id, 0}, 0});
    const auto end = segments.upper_bound({{id, INT32_MAX}, 0});
    const auto page_end = std::ranges::next(first, page.page, end);
    if (segments.erase(first, page_end) != end) return true;
    jobs.at(id).purged = true;
    jobs.at(id).versions.clear();
    std::erase_if(resume_points, [&](const auto& entry) { return entry.first.job == id; });
    std::erase_if(evaluations, [&](const auto& entry) { return entry.second.job == id; });
    std::erase_if(findings, [&](const auto& entry) { return entry.first.first == id; });
    std::erase_if(expired, [&](const auto& entry) { return entry.second.chain.job == id; });
    return false;
  }
  absl::Status DeleteChains(const std::string& job) override {
    std::erase_if(chains, [&](const auto& entry) { return entry.first.job == job; });
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<ChainRow>> FindChain(const ChainId& id) override { return Find(chains, id); }
  absl::StatusOr<std::vector<ChainRow>> ListChains(const std::string& job) override {
    std::vector<ChainRow> rows;
    for (auto i = chains.lower_bound({job, 0}); i != chains.end() && i->first.job == job; ++i)
      rows.push_back(i->second);
    return rows;
  }
  absl::StatusOr<int64_t> CountUnfinishedChains(const std::string& job) override {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ChainRow> rows, ListChains(job));
    return std::ranges::count_if(rows, [](const ChainRow& row) { return !IsFinal(row.state); });
  }
  absl::Status PutChain(const ChainRow& row) override {
    chains[row.id] = row;
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<std::string>> Tombstone(const ChainId& id, int64_t first_index) override {
    const auto found = segments.find({id, first_index});
    if (found == segments.end() || found->second.deleted) return std::optional<std::string>();
    found->second.deleted = true;
    return std::optional(found->second.segment.object.name);
  }
  absl::Status AddExpired(const ChainId& id, const std::string& object) override {
    expired.emplace(++last_expired, MemoryExpired{id, object});
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<std::string>> TakeExpired(int64_t ticket) override {
    const auto found = expired.extract(ticket);
    return found ? std::optional(found.mapped().object) : std::nullopt;
  }

  absl::StatusOr<std::optional<Version>> NewestVersion(const std::string& job) override {
    const auto& all = jobs.at(job).versions;
    return all.empty() ? std::nullopt : std::optional(all.rbegin()->second);
  }
  absl::Status InsertVersion(const Version& version) override {
    jobs.at(version.job).versions[version.number] = version;
    jobs.at(version.job).last_version = version.number;
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<Version>> FindVersion(const std::string& job, int64_t number) override {
    const auto found = jobs.find(job);
    return found == jobs.end() ? std::nullopt : Find(found->second.versions, number);
  }
  absl::StatusOr<std::vector<int64_t>> VersionNumbers(const std::string& job, int64_t last) override {
    std::vector<int64_t> numbers;
    for (const auto& [number, version] : jobs.at(job).versions) {
      if (number <= last) numbers.push_back(number);
    }
    return numbers;
  }
  absl::StatusOr<int64_t> LastVersionNumber(const std::string& job) override { return jobs.at(job).last_version; }
  absl::Status DeleteVersion(const std::string& job, int64_t number) override {
    jobs.at(job).versions.erase(number);
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<Alias>> FindAlias(const std::string& tenant, const std::string& name) override {
    return Find(aliases, std::pair(tenant, name));
  }
  absl::StatusOr<std::vector<Alias>> AliasesOfJob(const std::string& job) override {
    std::vector<Alias> of_job;
    for (const auto& [key, alias] : aliases) {
      if (alias.job == job) of_job.push_back(alias);
    }
    return of_job;
  }
  absl::StatusOr<int64_t> CountAliases(const std::string& tenant) override {
    return std::ranges::count_if(aliases, [&](const auto& entry) { return entry.first.first == tenant; });
  }
  absl::Status PutAlias(const Alias& alias) override {
    aliases[{alias.tenant, alias.name}] = alias;
    return absl::OkStatus();
  }
  absl::Status DeleteAlias(const std::string& tenant, const std::string& name) override {
    aliases.erase({tenant, name});
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<UseByJob>> JobsOfDataset(const std::string& key) override {
    std::vector<UseByJob> uses;
    for (const auto& [id, job] : jobs) {
      const auto& dataset = job.row.plan->dataset;
      const bool has = dataset && ContentKey(*dataset) == key;
      if (job.row.intent != JobIntent::kDelete && has) uses.push_back({id, job.row.tenant});
    }
    return uses;
  }
  absl::StatusOr<std::vector<UseByJob>> JobsOfModel(const std::string& key) override {
    std::vector<UseByJob> uses;
    for (const auto& [id, job] : jobs) {
      const bool has =
          std::ranges::any_of(FilesOf(*job.row.plan), [&](auto* file) { return ContentKey(*file) == key; });
      if (job.row.intent != JobIntent::kDelete && has) uses.push_back({id, job.row.tenant});
    }
    return uses;
  }

  absl::Status AddGarbage(const std::string& object) override {
    garbage.insert(object);
    return absl::OkStatus();
  }
  absl::Status RemoveGarbage(const std::string& object) override {
    garbage.erase(object);
    return absl::OkStatus();
  }

  absl::Status HoldObject(const std::string& upload, const std::string& object) override {
    held.emplace(upload, object);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::string>> ListHeld(const std::optional<std::string>& upload) override {
    std::set<std::string> objects;
    for (const auto& [holder, object] : held) {
      if (holder == upload.value_or(holder)) objects.insert(object);
    }
    return std::vector<std::string>(objects.begin(), objects.end());
  }
  absl::Status DropHeld(const std::optional<std::string>& upload) override {
    std::erase_if(held, [&](const auto& entry) { return entry.first == upload.value_or(entry.first); });
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsHeld(const std::string& object) override {
    return std::ranges::any_of(held, [&](const auto& entry) { return entry.second == object; });
  }

  absl::StatusOr<std::optional<EvaluationRow>> FindEvaluation(const std::string& id,
                                                              const std::optional<std::string>& tenant) override {
    return FindEvaluationIf([&](const auto& row) { return row.id == id && row.tenant == tenant.value_or(row.tenant); });
  }
  absl::StatusOr<std::optional<EvaluationRow>> FindEvaluationOfRequest(const std::string& tenant,
                                                                       const std::string& request_id) override {
    return FindEvaluationIf(
        [&](const EvaluationRow& row) { return row.tenant == tenant && row.request_id == request_id; });
  }
  absl::StatusOr<bool> InsertEvaluation(EvaluationRow* row) override {
    if (FindEvaluationIf([&](const EvaluationRow& other) { return other.id == row->id; })) return false;
    row->sequence = ++last_evaluation;
    evaluations[row->sequence] = *row;
    return true;
  }
  absl::Status UpdateEvaluation(const EvaluationRow& row) override {
    evaluations[row.sequence] = row;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<EvaluationRow>> EvaluationsUnderWay(const std::string& job) override {
    std::vector<EvaluationRow> rows;
    for (const auto& [sequence, row] : evaluations) {
      if (row.job == job && row.state == EvaluationState::kRunning) rows.push_back(row);
    }
    return rows;
  }
  absl::Status PutFinding(const std::string& job, const std::string& part, const std::string& body) override {
    findings[{job, part}] = body;
    return absl::OkStatus();
  }
  absl::Status DropOldEvaluations(const std::string& job, int32_t kept) override {
    int32_t newer = 0;
    for (auto i = evaluations.end(); i != evaluations.begin();) {
      --i;
      if (i->second.job != job || ++newer <= kept || i->second.state == EvaluationState::kRunning) continue;
      i = evaluations.erase(i);
    }
    return absl::OkStatus();
  }

  absl::Status QueueSweep(const ChainId& chain) override {
    std::erase_if(sweeps, [&](const auto& entry) { return entry.second == chain; });
    sweeps.emplace(++last_ticket, chain);
    return absl::OkStatus();
  }
  absl::Status RemoveSweep(int64_t ticket) override {
    sweeps.erase(ticket);
    return absl::OkStatus();
  }

  template <typename Matches>
  std::optional<EvaluationRow> FindEvaluationIf(Matches matches) const {
    for (const auto& [sequence, row] : evaluations) {
      if (matches(row)) return row;
    }
    return std::nullopt;
  }

  std::map<std::string, MemoryJob> jobs;
  std::map<ChainId, ChainRow> chains;
  std::map<int64_t, MemoryExpired> expired;                      // by ticket
  std::map<std::pair<std::string, std::string>, Alias> aliases;  // by tenant and name
  std::set<std::string> garbage;
  std::set<std::pair<std::string, std::string>> held;  // upload and object
  std::map<int64_t, ChainId> sweeps;                   // by ticket
  int64_t last_ticket = 0, last_expired = 0;
  std::map<std::pair<std::string, std::string>, std::string> findings;  // by job and part
  std::map<int64_t, EvaluationRow> evaluations;                         // by sequence
  int64_t last_evaluation = 0;
};

}  // namespace

struct RowsInMemory::Tables {
  Mutex mutex;
  std::string incarnation;
  int64_t generation CHAINFLEET_GUARDED_BY(mutex) = 0;
  MemoryRows rows CHAINFLEET_GUARDED_BY(mutex);
};

RowsInMemory::RowsInMemory(std::string incarnation) : tables_(std::make_unique<Tables>()) {
  tables_->incarnation = std::move(incarnation);
}
RowsInMemory::~RowsInMemory() = default;

RowsInMemoryStore::RowsInMemoryStore(std::shared_ptr<RowsInMemory> database) : database_(std::move(database)) {
  MutexLock lock(&database_->tables_->mutex);
  generation_ = ++database_->tables_->generation;
}

std::string RowsInMemoryStore::incarnation() const { return database_->tables_->incarnation; }

absl::StatusOr<std::vector<ApplyResult>> RowsInMemoryStore::Apply(std::span<const StateChange> changes,
                                                                  absl::Time wall) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  CHAINFLEET_RETURN_IF_ERROR(CheckGeneration(generation_, t.generation));
  std::vector<ApplyResult> results;
  for (const StateChange& change : changes) {
    CHAINFLEET_ASSIGN_OR_RETURN(ApplyResult result, ApplyChange(change, wall, &t.rows));
    results.push_back(std::move(result));
  }
  return results;
}

absl::StatusOr<StoredState> RowsInMemoryStore::Load() {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  StoredState state;
  for (const auto& [id, job] : t.rows.jobs) {
    if (job.purged) state.retired_names.push_back({job.row.tenant, job.row.plan->spec.name, job.row.sequence});
    if (job.purged) continue;
    StoredJob stored{job.row, {}, {}};
    CHAINFLEET_ASSIGN_OR_RETURN(stored.chains, t.rows.ListChains(id));
    CHAINFLEET_ASSIGN_OR_RETURN(stored.newest_version, t.rows.NewestVersion(id));
    state.jobs.push_back(std::move(stored));
  }
  std::ranges::sort(state.jobs, {}, [](const StoredJob& job) { return job.row.sequence; });
  for (const auto& [key, dataset] : t.rows.datasets) state.datasets.push_back(dataset);
  for (const auto& [key, model] : t.rows.models) state.models.push_back(model);
  for (const auto& [sha256, token] : t.rows.tokens) state.tokens.push_back(token);
  for (const auto& [key, alias] : t.rows.aliases) {
    state.aliases.push_back({alias, t.rows.jobs.at(alias.job).versions.at(alias.number)});
  }
  return state;
}

absl::StatusOr<std::vector<SegmentRecord>> RowsInMemoryStore::ListSegments(const SegmentQuery& query) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<SegmentRecord> records;
  auto i = t.rows.segments.upper_bound({{query.job, query.after_chain}, query.after_first_index});
  for (; i != t.rows.segments.end() && i->first.first.job == query.job; ++i) {
    if (static_cast<int32_t>(records.size()) >= query.limit) break;
    if (query.chain && i->first.first.index != *query.chain) continue;
    if (!query.live_only || !i->second.deleted) records.push_back(i->second);
  }
  return records;
}

absl::StatusOr<std::vector<ResumeRow>> RowsInMemoryStore::ListResumePoints(const std::string& job) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<ResumeRow> rows;
  for (const auto& [chain, point] : t.rows.resume_points) {
    if (chain.job != job) continue;
    rows.push_back({chain.index, t.rows.chains.at(chain).last_digest, point.step, point.sha256, point.proof});
  }
  return rows;
}

absl::StatusOr<SegmentRecord> RowsInMemoryStore::FindSegment(const std::string& job, const std::string& object) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  for (const auto& [key, record] : t.rows.segments) {
    if (key.first.job == job && record.segment.object.name == object) return record;
  }
  return NoSuchSegment(job, object);
}

absl::StatusOr<Version> RowsInMemoryStore::FindVersion(const std::string& job, int64_t number) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  CHAINFLEET_ASSIGN_OR_RETURN(std::optional<Version> version, t.rows.FindVersion(job, number));
  if (version) return *std::move(version);
  return NoSuchVersion(job, number);
}

absl::StatusOr<std::vector<Version>> RowsInMemoryStore::ListVersions(const std::string& job, int64_t after,
                                                                     int32_t limit) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<Version> versions;
  const auto found = t.rows.jobs.find(job);
  if (found == t.rows.jobs.end()) return versions;
  const std::map<int64_t, Version>& all = found->second.versions;
  for (auto i = all.upper_bound(after); i != all.end() && static_cast<int32_t>(versions.size()) < limit; ++i) {
    versions.push_back(i->second);
  }
  return versions;
}

absl::StatusOr<std::vector<ExpiredObject>> RowsInMemoryStore::ListExpired(int64_t last, int32_t limit) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<ExpiredObject> objects;
  for (const auto& [ticket, expired] : t.rows.expired) {
    if (ticket > last || static_cast<int32_t>(objects.size()) >= limit) break;
    objects.push_back({ticket, expired.object});
  }
  return objects;
}

absl::StatusOr<int64_t> RowsInMemoryStore::LastExpired() {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  return t.rows.expired.empty() ? 0 : t.rows.expired.rbegin()->first;
}

absl::StatusOr<std::vector<SegmentRecord>> RowsInMemoryStore::ListCorrupt(const SegmentCursor& after, int32_t limit) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<SegmentRecord> records;
  for (auto i = t.rows.segments.upper_bound({after.chain, after.first_index}); i != t.rows.segments.end(); ++i) {
    if (static_cast<int32_t>(records.size()) >= limit) break;
    if (i->second.corrupt && !i->second.deleted) records.push_back(i->second);
  }
  return records;
}

absl::StatusOr<int64_t> RowsInMemoryStore::CountCorrupt() {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  return std::ranges::count_if(t.rows.segments,
                               [](const auto& entry) { return entry.second.corrupt && !entry.second.deleted; });
}

absl::StatusOr<std::vector<EvaluationRow>> RowsInMemoryStore::ListEvaluations(const EvaluationQuery& query) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<EvaluationRow> rows;
  for (auto i = t.rows.evaluations.rbegin(); i != t.rows.evaluations.rend(); ++i) {
    const EvaluationRow& row = i->second;
    if (static_cast<int32_t>(rows.size()) >= query.limit) break;
    if (query.before > 0 && row.sequence >= query.before) continue;
    if (row.tenant != query.tenant.value_or(row.tenant) || row.state != query.state.value_or(row.state)) continue;
    if (!query.job.empty() && row.job != query.job) continue;
    if (!query.request_id.empty() && row.request_id != query.request_id) continue;
    rows.push_back(row);
    rows.back().result.clear();
  }
  return rows;
}

absl::StatusOr<EvaluationRow> RowsInMemoryStore::FindEvaluation(const std::string& id, const std::string& tenant) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<EvaluationRow> row, t.rows.FindEvaluation(id, tenant));
  if (!row) return NoSuch("evaluation", id);
  return *row;
}

absl::StatusOr<std::string> RowsInMemoryStore::FindFinding(const std::string& job, const std::string& part) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  const auto body = Find(t.rows.findings, std::pair(job, part));
  if (!body) return NoSuchFinding(job, part);
  return *body;
}

absl::StatusOr<std::vector<FindingName>> RowsInMemoryStore::ListFindings(const FindingName& after, int32_t limit) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<FindingName> names;
  for (auto i = t.rows.findings.upper_bound({after.job, after.part}); i != t.rows.findings.end(); ++i) {
    if (static_cast<int32_t>(names.size()) >= limit) break;
    names.push_back({i->first.first, i->first.second});
  }
  return names;
}

absl::StatusOr<bool> RowsInMemoryStore::MayCommit(const ChainId& chain, int64_t lease_epoch) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  const auto row = Find(t.rows.chains, chain);
  return row && !IsFinal(row->state) && row->lease_epoch <= lease_epoch && !t.rows.jobs.at(chain.job).purged;
}

absl::StatusOr<ChainReferences> RowsInMemoryStore::ReferencesOfChain(const ChainId& chain) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  ChainReferences references;
  if (const auto row = Find(t.rows.chains, chain)) {
    references.lease_epoch = row->lease_epoch;
    references.is_final = IsFinal(row->state) || t.rows.jobs.at(chain.job).purged;
  }
  for (auto i = t.rows.segments.lower_bound({chain, 0}); i != t.rows.segments.end() && i->first.first == chain; ++i) {
    if (!i->second.deleted) references.objects.insert(i->second.segment.object.name);
  }
  for (const auto& [ticket, expired] : t.rows.expired) {
    if (expired.chain == chain) references.objects.insert(expired.object);
  }
  const auto point = Find(t.rows.resume_points, chain);
  if (point && point->object) references.objects.insert(point->object->name);
  return references;
}

absl::StatusOr<std::vector<ChainSweep>> RowsInMemoryStore::ListSweeps(int64_t after, int32_t limit) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<ChainSweep> sweeps;
  for (auto i = t.rows.sweeps.upper_bound(after); i != t.rows.sweeps.end(); ++i) {
    if (static_cast<int32_t>(sweeps.size()) >= limit) break;
    sweeps.push_back({i->first, i->second});
  }
  return sweeps;
}

absl::StatusOr<std::vector<std::string>> RowsInMemoryStore::ListGarbage(const std::string& after, int32_t limit) {
  RowsInMemory::Tables& t = *database_->tables_;
  MutexLock lock(&t.mutex);
  std::vector<std::string> objects;
  for (auto i = t.rows.garbage.upper_bound(after); i != t.rows.garbage.end(); ++i) {
    if (static_cast<int32_t>(objects.size()) >= limit) break;
    objects.push_back(*i);
  }
  return objects;
}

}  // namespace chainfleet
