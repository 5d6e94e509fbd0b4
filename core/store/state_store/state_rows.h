// Row access of one store inside one open transaction: all that an implementation must provide for writing. What a
// change means is written once, in apply_change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"

namespace chainfleet {

// Not thread-safe. Errors are those of the database; they end the transaction. Absent rows are no error.
class StateRows {
 public:
  virtual ~StateRows() = default;

  // Jobs that are not purged.
  virtual absl::StatusOr<std::optional<JobRow>> FindJob(const std::string& id) = 0;
  virtual absl::StatusOr<std::optional<JobIntent>> FindIntent(const std::string& id) = 0;
  // Purged ones too: a request_id is never used twice.
  virtual absl::StatusOr<std::optional<std::string>> FindJobOfRequest(const std::string& tenant,
                                                                      const std::string& request_id) = 0;
  // Sets `row->sequence`; false if the id is taken, by a purged job too.
  virtual absl::StatusOr<bool> InsertJob(JobRow* row) = 0;
  // Intent, finishing time and stopped points.
  virtual absl::Status UpdateJob(const JobRow& row) = 0;
  // Its plan and asked_chains.
  virtual absl::Status ReplacePlan(const JobRow& row) = 0;
  // Whether a job of the tenant that is not to be deleted has this name or id.
  virtual absl::StatusOr<bool> IsJobName(const std::string& tenant, const std::string& name) = 0;
  // Deletes a page of its segments, resume points, versions, evaluations, findings and what had expired. True: there
  // may be more. False: only its chains are left, and its own row, which keeps its id taken: it is marked as purged,
  // hidden.
  virtual absl::StatusOr<bool> PurgeJob(const change::PurgeJob& page) = 0;
  virtual absl::Status DeleteChains(const std::string& job) = 0;

  virtual absl::StatusOr<std::optional<ChainRow>> FindChain(const ChainId& id) = 0;
  virtual absl::StatusOr<std::vector<ChainRow>> ListChains(const std::string& job) = 0;
  virtual absl::StatusOr<int64_t> CountUnfinishedChains(const std::string& job) = 0;
  virtual absl::Status PutChain(const ChainRow& row) = 0;
  virtual absl::StatusOr<std::optional<ResumePoint>> FindResumePoint(const ChainId& id) = 0;
  // What it is, if it is an object.
  virtual absl::StatusOr<std::optional<BlobRef>> FindResumeObject(const ChainId& id) = 0;
  virtual absl::Status PutResumePoint(const ChainId& id, const ResumePoint& point) = 0;

  // Of the segment that begins at `first_index`.
  virtual absl::StatusOr<std::optional<DigestHex>> FindDigest(const ChainId& id, int64_t first_index) = 0;
  virtual absl::Status InsertSegment(const SegmentRecord& record) = 0;
  // False if there is no such segment.
  virtual absl::StatusOr<bool> MarkCorrupt(const std::string& job, const std::string& object, bool corrupt) = 0;

  // Its object, if the segment was no tombstone already.
  virtual absl::StatusOr<std::optional<std::string>> Tombstone(const ChainId& id, int64_t first_index) = 0;
  // Under a ticket above all before.
  virtual absl::Status AddExpired(const ChainId& id, const std::string& object) = 0;
  // The object, if the ticket is there still.
  virtual absl::StatusOr<std::optional<std::string>> TakeExpired(int64_t ticket) = 0;

  virtual absl::StatusOr<std::optional<Snapshot>> NewestSnapshot(const std::string& job) = 0;
  virtual absl::StatusOr<std::optional<Snapshot>> FindSnapshot(const std::string& job, int64_t number) = 0;
  // Of those that are there, up to `last`, rising.
  virtual absl::StatusOr<std::vector<int64_t>> SnapshotNumbers(const std::string& job, int64_t last) = 0;
  // The highest number ever given out, of deleted ones too; 0 if none.
  virtual absl::StatusOr<int64_t> LastSnapshotNumber(const std::string& job) = 0;
  virtual absl::Status InsertSnapshot(const Snapshot& snapshot) = 0;
  virtual absl::Status DeleteSnapshot(const std::string& job, int64_t number) = 0;

  virtual absl::StatusOr<std::optional<Alias>> FindAlias(const std::string& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<std::vector<Alias>> AliasesOfJob(const std::string& job) = 0;
  virtual absl::StatusOr<int64_t> CountAliases(const std::string& tenant) = 0;
  virtual absl::Status PutAlias(const Alias& alias) = 0;
  virtual absl::Status DeleteAlias(const std::string& tenant, const std::string& name) = 0;

  virtual absl::StatusOr<std::vector<Dataset>> ListDatasets() = 0;
  virtual absl::Status InsertDataset(const Dataset& dataset) = 0;
  virtual absl::Status DeleteDataset(const std::string& name) = 0;
  // Ids of the jobs that use it and whose intent is not DELETE.
  virtual absl::StatusOr<std::vector<std::string>> JobsOfDataset(const std::string& name) = 0;

  virtual absl::StatusOr<std::vector<StoredModel>> ListModels() = 0;
  virtual absl::Status InsertModel(const StoredModel& model) = 0;
  virtual absl::Status DeleteModel(const std::string& name) = 0;
  // As JobsOfDataset, by the module of their plans.
  virtual absl::StatusOr<std::vector<std::string>> JobsOfModel(const std::string& name) = 0;

  // Adding what is there changes nothing.
  virtual absl::Status AddGarbage(const std::string& object) = 0;
  virtual absl::Status RemoveGarbage(const std::string& object) = 0;

  // Objects held by uploads.
  virtual absl::Status HoldObject(const std::string& upload, const std::string& object) = 0;
  // Of all uploads if none is named.
  virtual absl::StatusOr<std::vector<std::string>> ListHeld(const std::optional<std::string>& upload) = 0;
  virtual absl::Status DropHeld(const std::optional<std::string>& upload) = 0;
  virtual absl::StatusOr<bool> IsHeld(const std::string& object) = 0;

  virtual absl::StatusOr<std::optional<EvaluationRow>> FindEvaluation(const std::string& id) = 0;
  virtual absl::StatusOr<std::optional<EvaluationRow>> FindEvaluationOfRequest(const std::string& tenant,
                                                                               const std::string& request_id) = 0;
  // Sets `row->sequence`; false if the id is taken.
  virtual absl::StatusOr<bool> InsertEvaluation(EvaluationRow* row) = 0;
  // All but what identifies it.
  virtual absl::Status UpdateEvaluation(const EvaluationRow& row) = 0;
  // Those of the job that run or wait, without results.
  virtual absl::StatusOr<std::vector<EvaluationRow>> EvaluationsUnderWay(const std::string& job) = 0;
  // Of the job those that are neither RUNNING nor among its newest `kept`.
  virtual absl::Status DropOldEvaluations(const std::string& job, int32_t kept) = 0;

  // Replaces what the job has under that name.
  virtual absl::Status PutFinding(const std::string& job, const std::string& part, const std::string& body) = 0;

  // Under a ticket above all before; a chain has one.
  virtual absl::Status QueueSweep(const ChainId& chain) = 0;
  virtual absl::Status RemoveSweep(int64_t ticket) = 0;
};

}  // namespace chainfleet
