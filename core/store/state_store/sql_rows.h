// The rows of a StateStore in an SQL database, over one connection. The writer and the readers share the reading
// functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/store/state_store/object_home.h"
#include "core/store/state_store/sql_connection.h"
#include "core/store/state_store/state_rows.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

class SqlRows : public StateRows {
 public:
  explicit SqlRows(SqlConnection* connection) : connection_(connection) {}

  absl::StatusOr<std::optional<JobRow>> FindJob(const std::string& id) override;
  absl::StatusOr<std::optional<JobIntent>> FindIntent(const std::string& id) override;
  absl::StatusOr<std::optional<std::string>> FindJobOfRequest(const std::string& tenant,
                                                              const std::string& request_id) override;
  absl::StatusOr<bool> InsertJob(JobRow* row) override;
  absl::Status UpdateJob(const JobRow& row) override;
  absl::Status ReplacePlan(const JobRow& row) override;
  absl::StatusOr<bool> IsJobName(const std::string& tenant, const std::string& name) override;
  absl::StatusOr<bool> PurgeJob(const change::PurgeJob& page) override;
  absl::Status DeleteChains(const std::string& job) override;
  absl::StatusOr<std::optional<ChainRow>> FindChain(const ChainId& id) override;
  absl::StatusOr<std::vector<ChainRow>> ListChains(const std::string& job) override;
  absl::StatusOr<int64_t> CountUnfinishedChains(const std::string& job) override;
  absl::Status PutChain(const ChainRow& row) override;
  absl::StatusOr<std::optional<ResumePoint>> FindResumePoint(const ChainId& id) override;
  absl::StatusOr<std::optional<BlobRef>> FindResumeObject(const ChainId& id) override;
  absl::Status PutResumePoint(const ChainId& id, const ResumePoint& point) override;
  absl::StatusOr<std::optional<SegmentRecord>> FindNewestSegment(const ChainId& id) override;
  absl::StatusOr<std::optional<DigestHex>> FindDigest(const ChainId& id, int64_t first_index) override;
  absl::Status InsertSegment(const SegmentRecord& record) override;
  absl::StatusOr<bool> MarkCorrupt(const std::string& job, const std::string& object, bool corrupt) override;
  absl::StatusOr<std::optional<std::string>> Tombstone(const ChainId& id, int64_t first_index) override;
  absl::Status AddExpired(const ChainId& id, const std::string& object) override;
  absl::StatusOr<std::optional<std::string>> TakeExpired(int64_t ticket) override;
  absl::StatusOr<std::optional<Version>> NewestVersion(const std::string& job) override;
  absl::StatusOr<std::optional<Version>> FindVersion(const std::string& job, int64_t number) override;
  absl::StatusOr<std::vector<int64_t>> VersionNumbers(const std::string& job, int64_t last) override;
  absl::StatusOr<int64_t> LastVersionNumber(const std::string& job) override;
  absl::Status InsertVersion(const Version& version) override;
  absl::Status DeleteVersion(const std::string& job, int64_t number) override;
  absl::StatusOr<std::optional<Alias>> FindAlias(const std::string& tenant, const std::string& name) override;
  absl::StatusOr<std::vector<Alias>> AliasesOfJob(const std::string& job) override;
  absl::StatusOr<int64_t> CountAliases(const std::string& tenant) override;
  absl::Status PutAlias(const Alias& alias) override;
  absl::Status DeleteAlias(const std::string& tenant, const std::string& name) override;
  absl::StatusOr<std::optional<Dataset>> FindDataset(const std::string& key) override;
  absl::Status InsertDataset(const Dataset& dataset) override;
  absl::Status DeleteDataset(const std::string& key) override;
  absl::StatusOr<std::vector<UseByJob>> JobsOfDataset(const std::string& key) override;
  absl::StatusOr<std::optional<StoredModel>> FindModel(const std::string& key) override;
  absl::StatusOr<bool> HasModel(const StoredModel& model) override;
  absl::Status InsertModel(const StoredModel& model) override;
  absl::Status DeleteModel(const std::string& key) override;
  absl::StatusOr<std::vector<UseByJob>> JobsOfModel(const std::string& key) override;
  absl::StatusOr<bool> IsContent(const std::string& object) override;
  absl::Status AddGarbage(const std::string& object) override;
  absl::Status RemoveGarbage(const std::string& object) override;
  absl::Status HoldObject(const std::string& upload, const std::string& object) override;
  absl::StatusOr<std::vector<std::string>> ListHeld(const std::optional<std::string>& upload) override;
  absl::Status DropHeld(const std::optional<std::string>& upload) override;
  absl::StatusOr<bool> IsHeld(const std::string& object) override;
  absl::StatusOr<std::optional<EvaluationRow>> FindEvaluation(const std::string& id,
                                                              const std::optional<std::string>& tenant) override;
  absl::StatusOr<std::optional<EvaluationRow>> FindEvaluationOfRequest(const std::string& tenant,
                                                                       const std::string& request_id) override;
  absl::StatusOr<bool> InsertEvaluation(EvaluationRow* row) override;
  absl::Status UpdateEvaluation(const EvaluationRow& row) override;
  absl::StatusOr<std::vector<EvaluationRow>> EvaluationsUnderWay(const std::string& job) override;
  absl::Status DropOldEvaluations(const std::string& job, int32_t kept) override;
  absl::Status PutFinding(const std::string& job, const std::string& part, const std::string& body) override;
  absl::StatusOr<std::optional<AccessToken>> FindToken(const std::string& sha256) override;
  absl::StatusOr<int64_t> CountTokens(const std::optional<std::string>& tenant) override;
  absl::Status InsertToken(const AccessToken& token) override;
  absl::Status DeleteToken(const std::string& sha256) override;
  absl::Status QueueSweep(const ChainId& chain) override;
  absl::Status RemoveSweep(int64_t ticket) override;

  // Reads that changes do not need.
  absl::StatusOr<std::vector<JobRow>> ListJobs();
  absl::StatusOr<std::vector<Dataset>> ListDatasets();
  absl::StatusOr<std::vector<StoredModel>> ListModels();
  absl::StatusOr<std::vector<SegmentRecord>> ListSegments(const StateStore::SegmentQuery& query);
  absl::StatusOr<std::vector<ResumeRow>> ListResumePoints(const std::string& job);
  absl::StatusOr<std::optional<SegmentRecord>> FindSegment(const std::string& job, const std::string& object);
  absl::StatusOr<std::vector<Version>> ListVersions(const std::string& job, int64_t after, int32_t limit);
  absl::StatusOr<std::vector<StoredAlias>> ListAliases();
  absl::StatusOr<std::vector<RetiredName>> ListRetiredNames();
  absl::StatusOr<std::vector<AccessToken>> ListTokens();
  absl::StatusOr<std::vector<ExpiredObject>> ListExpired(int64_t last, int32_t limit);
  absl::StatusOr<int64_t> LastExpired();
  absl::StatusOr<std::vector<SegmentRecord>> ListCorrupt(const StateStore::SegmentCursor& after, int32_t limit);
  absl::StatusOr<int64_t> CountCorrupt();
  absl::StatusOr<std::vector<EvaluationRow>> ListEvaluations(const EvaluationQuery& query);
  absl::StatusOr<std::optional<std::string>> FindFinding(const std::string& job, const std::string& part);
  absl::StatusOr<std::vector<FindingName>> ListFindings(const FindingName& after, int32_t limit);
  absl::StatusOr<bool> MayCommit(const ChainId& chain, int64_t lease_epoch);
  absl::StatusOr<ChainReferences> ReferencesOfChain(const ChainId& chain);
  absl::StatusOr<std::vector<ChainSweep>> ListSweeps(int64_t after, int32_t limit);
  absl::StatusOr<std::vector<std::string>> ListGarbage(const std::string& after, int32_t limit);
  absl::StatusOr<std::vector<std::string>> FormerIncarnations();

  // OTHER_STORE (object_home.h) if the store keeps another place and may have objects there.
  absl::Status CheckKeptHome(const ObjectHome& mine);
  // As CheckKeptHome, then keeps `mine`.
  absl::Status KeepHome(const ObjectHome& mine);

  // The part of Opening::kRestored that is the same in every database: everything except the generation.
  absl::Status Restore(const std::string& fresh_incarnation);

 protected:
  SqlConnection* const connection_;
};

}  // namespace chainfleet
