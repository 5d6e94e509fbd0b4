// Row access of one store inside one open transaction: the writing interface that an implementation provides.
// apply_change defines the meaning of each change once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"

namespace chainfleet {

// A job that uses a data set or a model.
struct UseByJob {
  std::string id, tenant;
  static void Fields(auto& self, auto&& visit) {
    visit("id", self.id);
    visit("tenant", self.tenant);
  }
};

// Not thread-safe. Errors come from the database and end the transaction. An absent row is not an error.
class StateRows {
 public:
  virtual ~StateRows() = default;

  // FindJob and FindIntent find jobs that are not purged.
  virtual absl::StatusOr<std::optional<JobRow>> FindJob(const std::string& id) = 0;
  virtual absl::StatusOr<std::optional<JobIntent>> FindIntent(const std::string& id) = 0;
  // Also finds purged jobs: a request_id is never used twice.
  virtual absl::StatusOr<std::optional<std::string>> FindJobOfRequest(const std::string& tenant,
                                                                      const std::string& request_id) = 0;
  // Sets `row->sequence`. False if the id is taken, also by a purged job.
  virtual absl::StatusOr<bool> InsertJob(JobRow* row) = 0;
  // Updates intent, finishing time and stopped points.
  virtual absl::Status UpdateJob(const JobRow& row) = 0;
  // Updates plan and asked_chains.
  virtual absl::Status ReplacePlan(const JobRow& row) = 0;
  // True if a job of the tenant that is not to be deleted has this name or id.
  virtual absl::StatusOr<bool> IsJobName(const std::string& tenant, const std::string& name) = 0;
  // Deletes a page of the job's segments, resume points, versions, evaluations, findings and expired objects. True:
  // there may be more. False: only its chains are left and its own row, which is marked as purged and hidden, and keeps
  // the id taken.
  virtual absl::StatusOr<bool> PurgeJob(const change::PurgeJob& page) = 0;
  virtual absl::Status DeleteChains(const std::string& job) = 0;

  virtual absl::StatusOr<std::optional<ChainRow>> FindChain(const ChainId& id) = 0;
  virtual absl::StatusOr<std::vector<ChainRow>> ListChains(const std::string& job) = 0;
  virtual absl::StatusOr<int64_t> CountUnfinishedChains(const std::string& job) = 0;
  virtual absl::Status PutChain(const ChainRow& row) = 0;
  virtual absl::StatusOr<std::optional<ResumePoint>> FindResumePoint(const ChainId& id) = 0;
  // The object of the resume point, if it is not inline.
  virtual absl::StatusOr<std::optional<BlobRef>> FindResumeObject(const ChainId& id) = 0;
  virtual absl::Status PutResumePoint(const ChainId& id, const ResumePoint& point) = 0;

  // The segment with the chain's last draws, which may be a tombstone.
  virtual absl::StatusOr<std::optional<SegmentRecord>> FindNewestSegment(const ChainId& id) = 0;
  // The digest of the segment that begins at `first_index`.
  virtual absl::StatusOr<std::optional<DigestHex>> FindDigest(const ChainId& id, int64_t first_index) = 0;
  virtual absl::Status InsertSegment(const SegmentRecord& record) = 0;
  // False if there is no such segment.
  virtual absl::StatusOr<bool> MarkCorrupt(const std::string& job, const std::string& object, bool corrupt) = 0;

  // Returns the segment's object, unless the segment was a tombstone already.
  virtual absl::StatusOr<std::optional<std::string>> Tombstone(const ChainId& id, int64_t first_index) = 0;
  // Adds the object under a ticket above all earlier ones.
  virtual absl::Status AddExpired(const ChainId& id, const std::string& object) = 0;
  // Removes the ticket and returns its object, if the ticket exists.
  virtual absl::StatusOr<std::optional<std::string>> TakeExpired(int64_t ticket) = 0;

  virtual absl::StatusOr<std::optional<Version>> NewestVersion(const std::string& job) = 0;
  virtual absl::StatusOr<std::optional<Version>> FindVersion(const std::string& job, int64_t number) = 0;
  // Numbers of existing versions up to `last`, ascending.
  virtual absl::StatusOr<std::vector<int64_t>> VersionNumbers(const std::string& job, int64_t last) = 0;
  // The highest number ever used, including deleted versions; 0 if none.
  virtual absl::StatusOr<int64_t> LastVersionNumber(const std::string& job) = 0;
  virtual absl::Status InsertVersion(const Version& version) = 0;
  virtual absl::Status DeleteVersion(const std::string& job, int64_t number) = 0;

  virtual absl::StatusOr<std::optional<Alias>> FindAlias(const std::string& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<std::vector<Alias>> AliasesOfJob(const std::string& job) = 0;
  virtual absl::StatusOr<int64_t> CountAliases(const std::string& tenant) = 0;
  virtual absl::Status PutAlias(const Alias& alias) = 0;
  virtual absl::Status DeleteAlias(const std::string& tenant, const std::string& name) = 0;

  // By ContentKey, as the rows of models. A record may have megabytes, and there may be thousands.
  virtual absl::StatusOr<std::optional<Dataset>> FindDataset(const std::string& key) = 0;
  virtual absl::Status InsertDataset(const Dataset& dataset) = 0;
  virtual absl::Status DeleteDataset(const std::string& key) = 0;
  // The jobs that use it and whose intent is not DELETE, by id.
  virtual absl::StatusOr<std::vector<UseByJob>> JobsOfDataset(const std::string& key) = 0;

  virtual absl::StatusOr<std::optional<StoredModel>> FindModel(const std::string& key) = 0;
  // True if a model of this key has this object. Reads no record.
  virtual absl::StatusOr<bool> HasModel(const StoredModel& model) = 0;
  virtual absl::Status InsertModel(const StoredModel& model) = 0;
  virtual absl::Status DeleteModel(const std::string& key) = 0;
  // As JobsOfDataset, by the module of their plans.
  virtual absl::StatusOr<std::vector<UseByJob>> JobsOfModel(const std::string& key) = 0;

  // True if a data set or a model has the object.
  virtual absl::StatusOr<bool> IsContent(const std::string& object) = 0;

  // Adding an object twice changes nothing.
  virtual absl::Status AddGarbage(const std::string& object) = 0;
  virtual absl::Status RemoveGarbage(const std::string& object) = 0;

  // Objects held by uploads.
  virtual absl::Status HoldObject(const std::string& upload, const std::string& object) = 0;
  // nullopt means all uploads.
  virtual absl::StatusOr<std::vector<std::string>> ListHeld(const std::optional<std::string>& upload) = 0;
  virtual absl::Status DropHeld(const std::optional<std::string>& upload) = 0;
  virtual absl::StatusOr<bool> IsHeld(const std::string& object) = 0;

  // A tenant finds only its own evaluations. nullopt means any tenant.
  virtual absl::StatusOr<std::optional<EvaluationRow>> FindEvaluation(const std::string& id,
                                                                      const std::optional<std::string>& tenant) = 0;
  virtual absl::StatusOr<std::optional<EvaluationRow>> FindEvaluationOfRequest(const std::string& tenant,
                                                                               const std::string& request_id) = 0;
  // Sets `row->sequence`; false if the id is taken.
  virtual absl::StatusOr<bool> InsertEvaluation(EvaluationRow* row) = 0;
  // Updates everything except the identifying fields.
  virtual absl::Status UpdateEvaluation(const EvaluationRow& row) = 0;
  // Running and waiting evaluations of the job, without results.
  virtual absl::StatusOr<std::vector<EvaluationRow>> EvaluationsUnderWay(const std::string& job) = 0;
  // Deletes the job's evaluations that are neither RUNNING nor among its newest `kept`.
  virtual absl::Status DropOldEvaluations(const std::string& job, int32_t kept) = 0;

  // Replaces the job's part of this name.
  virtual absl::Status PutFinding(const std::string& job, const std::string& part, const std::string& body) = 0;

  virtual absl::StatusOr<std::optional<AccessToken>> FindToken(const std::string& sha256) = 0;
  // `tenant`: only tokens of this tenant.
  virtual absl::StatusOr<int64_t> CountTokens(const std::optional<std::string>& tenant) = 0;
  virtual absl::Status InsertToken(const AccessToken& token) = 0;
  virtual absl::Status DeleteToken(const std::string& sha256) = 0;

  // Queues the chain under a ticket above all earlier ones, replacing its old ticket.
  virtual absl::Status QueueSweep(const ChainId& chain) = 0;
  virtual absl::Status RemoveSweep(int64_t ticket) = 0;
};

}  // namespace chainfleet
