// A StateStore over maps, for the simulation: a run takes half the time of one on SQL. Several coordinators may share
// its rows.
#pragma once

#include <memory>
#include <string>

#include "core/store/state_store/state_store.h"

namespace chainfleet {

// The stored rows, which outlive a coordinator. Thread-safe.
class RowsInMemory {
 public:
  explicit RowsInMemory(std::string incarnation);
  ~RowsInMemory();

 private:
  friend class RowsInMemoryStore;
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

class RowsInMemoryStore final : public StateStore {
 public:
  // Takes over `database`.
  explicit RowsInMemoryStore(std::shared_ptr<RowsInMemory> database);

  std::string incarnation() const override;
  int64_t generation() const override { return generation_; }
  absl::StatusOr<std::vector<std::string>> FormerIncarnations() override { return std::vector<std::string>(); }
  absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const StateChange> changes, absl::Time wall) override;
  absl::StatusOr<StoredState> Load() override;
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
  const std::shared_ptr<RowsInMemory> database_;
  int64_t generation_ = 0;
};

}  // namespace chainfleet
