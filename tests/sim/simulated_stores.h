// The stores as one simulated coordinator sees them: calls take time, fail on demand, and end with the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/store/state_store/state_store.h"
#include "tests/sim/process.h"
#include "tests/sim/site.h"

namespace chainfleet {

// Opens the site's database and takes it over. Records accepted changes in the site's history.
class SimulatedStateStore final : public StateStore {
 public:
  SimulatedStateStore(Site* site, Process* process) : site_(*site), process_(*process), store_(site->open_state()) {}

  std::string incarnation() const override { return store_->incarnation(); }
  int64_t generation() const override { return store_->generation(); }
  absl::StatusOr<std::vector<std::string>> FormerIncarnations() override { return store_->FormerIncarnations(); }
  absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const StateChange> changes, absl::Time wall) override;
  absl::StatusOr<StoredState> Load() override { return store_->Load(); }
  absl::StatusOr<std::vector<SegmentRecord>> ListSegments(const SegmentQuery& query) override;
  absl::StatusOr<std::vector<ResumeRow>> ListResumePoints(const std::string& job) override;
  absl::StatusOr<SegmentRecord> FindSegment(const std::string& job, const std::string& object) override;
  absl::StatusOr<Version> FindVersion(const std::string& job, int64_t number) override;
  absl::StatusOr<std::vector<Version>> ListVersions(const std::string& job, int64_t after, int32_t limit) override;
  absl::StatusOr<std::vector<ExpiredObject>> ListExpired(int64_t last, int32_t limit) override;
  absl::StatusOr<int64_t> LastExpired() override;
  absl::StatusOr<std::vector<SegmentRecord>> ListCorrupt(const SegmentCursor& after, int32_t limit) override;
  absl::StatusOr<int64_t> CountCorrupt() override;
  absl::StatusOr<std::vector<EvaluationRow>> ListEvaluations(const EvaluationQuery& query) override;
  absl::StatusOr<EvaluationRow> FindEvaluation(const std::string& id, const std::string& tenant) override;
  absl::StatusOr<std::string> FindFinding(const std::string& job, const std::string& part) override;
  absl::StatusOr<std::vector<FindingName>> ListFindings(const FindingName& after, int32_t limit) override;
  absl::StatusOr<bool> MayCommit(const ChainId& chain, int64_t lease_epoch) override;
  absl::StatusOr<ChainReferences> ReferencesOfChain(const ChainId& chain) override;
  absl::StatusOr<std::vector<ChainSweep>> ListSweeps(int64_t after, int32_t limit) override;
  absl::StatusOr<std::vector<std::string>> ListGarbage(const std::string& after, int32_t limit) override;

 private:
  absl::Status Wait() const;
  void Record(const StateChange& change, const ApplyResult& result);

  Site& site_;
  Process& process_;
  const std::unique_ptr<StateStore> store_;
};

// `target` outlives this object.
class SimulatedBlobStore final : public BlobStore {
 public:
  SimulatedBlobStore(Site* site, Process* process, BlobStore* target)
      : site_(*site), process_(*process), target_(target) {}

  absl::Status Put(const std::string& name, const ByteSource& content) override;
  absl::Status Replace(const std::string& name, const ByteSource& content) override;
  absl::StatusOr<std::string> Get(const std::string& name) const override;
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override;
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override;
  absl::Status Delete(const std::string& name) override;

 private:
  absl::Status Wait() const;

  Site& site_;
  Process& process_;
  BlobStore* const target_;
};

}  // namespace chainfleet
