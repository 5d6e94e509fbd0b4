// A StateStore in memory: for tests and the simulator, also with several coordinators on one database.
#pragma once

#include <memory>
#include <string>

#include "core/store/state_store/object_home.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

// What survives a coordinator. Thread-safe.
class MemoryDatabase {
 public:
  explicit MemoryDatabase(std::string incarnation);
  ~MemoryDatabase();

 private:
  friend class MemoryStateStore;
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

class MemoryStateStore final : public StateStore {
 public:
  // Takes `database` over.
  explicit MemoryStateStore(std::shared_ptr<MemoryDatabase> database);
  // The same for who looks for its objects at `home`. OTHER_STORE of object_home.h: nothing was taken over.
  static absl::StatusOr<std::unique_ptr<MemoryStateStore>> Open(std::shared_ptr<MemoryDatabase> database,
                                                                const ObjectHome& home);
  // The same as restored, under another name.
  MemoryStateStore(std::shared_ptr<MemoryDatabase> database, const std::string& fresh_incarnation);

  std::string incarnation() const override { return incarnation_; }
  int64_t generation() const override { return generation_; }
  absl::StatusOr<std::vector<std::string>> FormerIncarnations() override;
  absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const StateChange> changes, absl::Time wall) override;
  absl::StatusOr<StoredState> Load() override;
  absl::StatusOr<std::vector<SegmentRecord>> ListSegments(const SegmentQuery& query) override;
  absl::StatusOr<SegmentRecord> FindSegment(const std::string& job, const std::string& object) override;
  absl::StatusOr<Snapshot> FindSnapshot(const std::string& job, int64_t number) override;
  absl::StatusOr<std::vector<Snapshot>> ListSnapshots(const std::string& job, int64_t after, int32_t limit) override;
  absl::StatusOr<std::vector<ExpiredObject>> ListExpired(int64_t last, int32_t limit) override;
  absl::StatusOr<int64_t> LastExpired() override;
  absl::StatusOr<std::vector<SegmentRecord>> ListCorrupt(const SegmentCursor& after, int32_t limit) override;
  absl::StatusOr<int64_t> CountCorrupt() override;
  absl::StatusOr<std::vector<EvaluationRow>> ListEvaluations(const EvaluationQuery& query) override;
  absl::StatusOr<EvaluationRow> FindEvaluation(const std::string& id) override;
  absl::StatusOr<std::string> FindFinding(const std::string& job, const std::string& part) override;
  absl::StatusOr<bool> MayCommit(const ChainId& chain, int64_t lease_epoch) override;
  absl::StatusOr<ChainReferences> ReferencesOfChain(const ChainId& chain) override;
  absl::StatusOr<std::vector<ChainSweep>> ListSweeps(int64_t after, int32_t limit) override;
  absl::StatusOr<std::vector<std::string>> ListGarbage(const std::string& after, int32_t limit) override;

 private:
  const std::shared_ptr<MemoryDatabase> database_;
  std::string incarnation_;
  int64_t generation_ = 0;
};

}  // namespace chainfleet
