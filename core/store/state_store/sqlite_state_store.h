// The embedded StateStore: one SQLite file in WAL mode, synchronous=FULL. One writer connection, one for reads.
#pragma once

#include <memory>
#include <string>

#include "core/store/state_store/state_store.h"

namespace chainfleet {

class SqliteStateStore final : public StateStore {
 public:
  // Opens or makes the file at `path`, checks it, and takes the store over. `fresh_incarnation`: random, used if the
  // store is new. DATA_LOSS if the file is damaged, FAILED_PRECONDITION / SCHEMA_TOO_NEW, RESOURCE_EXHAUSTED /
  // DISK_FULL, INTERNAL. The caller holds a lock on the folder: two processes on one file are refused there.
  static absl::StatusOr<std::unique_ptr<SqliteStateStore>> Open(const std::string& path,
                                                                const std::string& fresh_incarnation);
  ~SqliteStateStore() override;

  std::string incarnation() const override { return incarnation_; }
  int64_t generation() const override { return generation_; }
  absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const StateChange> changes, absl::Time wall) override;
  absl::StatusOr<StoredState> Load() override;
  absl::StatusOr<std::vector<SegmentRecord>> ListSegments(const SegmentQuery& query) override;
  absl::StatusOr<SegmentRecord> FindSegment(const std::string& job, const std::string& object) override;
  absl::StatusOr<Snapshot> FindSnapshot(const std::string& job, int64_t number) override;
  absl::StatusOr<std::vector<SegmentRecord>> ListCorrupt(const SegmentCursor& after, int32_t limit) override;
  absl::StatusOr<int64_t> CountCorrupt() override;
  absl::StatusOr<bool> MayCommit(const ChainId& chain, int64_t lease_epoch) override;
  absl::StatusOr<ChainReferences> ReferencesOfChain(const ChainId& chain) override;
  absl::StatusOr<std::vector<ChainSweep>> ListSweeps(int64_t after, int32_t limit) override;
  absl::StatusOr<std::vector<std::string>> ListGarbage(const std::string& after, int32_t limit) override;

 private:
  struct Side;
  SqliteStateStore();
  const std::unique_ptr<Side> writer_, reader_;
  std::string incarnation_;
  int64_t generation_ = 0;
};

}  // namespace chainfleet
