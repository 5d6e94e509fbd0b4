// A StateStore over two connections to one SQL database: one writes, one reads.
#pragma once

#include <memory>
#include <string>

#include "core/store/state_store/sql_connection.h"
#include "core/store/state_store/state_store.h"

namespace chainfleet {

// Facts about a database that this process has taken over.
struct StoreOwnership {
  std::string incarnation;
  int64_t generation = 0;
  // Reads the generation inside a write transaction, and prevents that it rises before the transaction ends.
  std::string generation_sql;
  // Prefetches the rows that a group of changes needs; set if statements cost a network round trip. Parameters: arrays,
  // in text form, of job, chain, first index of a segment (-1: none) and whether the bytes of the resume point are
  // needed (1: yes). Result rows: for each chain its columns; step, bytes, object and sha256 of its resume point; the
  // segment's digest; its job's intent.
  std::string fetch_sql;
};

class SqlStateStore final : public StateStore {
 public:
  // Both connections are to a database that has its tables and that `ownership` took over.
  SqlStateStore(std::unique_ptr<SqlConnection> writer, std::unique_ptr<SqlConnection> reader, StoreOwnership ownership);
  ~SqlStateStore() override;

  std::string incarnation() const override { return ownership_.incarnation; }
  absl::StatusOr<std::vector<std::string>> FormerIncarnations() override;
  int64_t generation() const override { return ownership_.generation; }
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
  struct Side;
  const std::unique_ptr<Side> writer_, reader_;
  const StoreOwnership ownership_;
};

}  // namespace chainfleet
