// A StateStore over another store. Counts groups and reads of segments, and fails on demand, as with a full disk or a
// lost leadership.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/mutex.h"
#include "tests/support/memory_database.h"

namespace chainfleet {

// Thread-safe, except the methods that make it fail, its hooks and `group_sizes`.
class RecordingStore final : public StateStore {
 public:
  explicit RecordingStore(std::unique_ptr<StateStore> store = MemoryDatabase("incarnation-1").Open())
      : store_(std::move(store)) {}

  // Makes Apply return `status` for the whole group.
  void FailWith(absl::Status status) { failure_ = std::move(status); }
  // While true, every change fails and nothing is written.
  void SetFull(bool full) { full_ = full; }
  const std::vector<int>& group_sizes() const { return group_sizes_; }
  // Returns the number of calls of ListSegments.
  int64_t segment_reads() const { return segment_reads_; }
  // Returns the number of records that they returned.
  int64_t segments_read() const { return segments_read_; }
  // Runs `hook` before each Apply and ListGarbage.
  void BeforeEachCall(std::function<void()> hook) { hook_ = std::move(hook); }
  // Runs `hook` before ListSegments returns the segments that it has read.
  void AfterSegmentsAreRead(std::function<void()> hook) { read_hook_ = std::move(hook); }

  std::string incarnation() const override { return store_->incarnation(); }
  int64_t generation() const override { return store_->generation(); }
  absl::StatusOr<std::vector<std::string>> FormerIncarnations() override { return store_->FormerIncarnations(); }
  absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const StateChange> changes, absl::Time wall) override {
    if (hook_) hook_();
    {
      MutexLock lock(&mutex_);
      group_sizes_.push_back(static_cast<int>(changes.size()));
    }
    if (failure_) return *failure_;
    if (!full_) return store_->Apply(changes, wall);
    std::vector<ApplyResult> results(changes.size());
    for (ApplyResult& result : results) {
      result.status = WithReason(absl::ResourceExhaustedError("disk full"), "DISK_FULL");
    }
    return results;
  }
  absl::StatusOr<StoredState> Load() override { return store_->Load(); }
  absl::StatusOr<std::vector<SegmentRecord>> ListSegments(const SegmentQuery& query) override {
    ++segment_reads_;
    auto records = store_->ListSegments(query);
    if (records.ok()) segments_read_ += static_cast<int64_t>(records->size());
    if (read_hook_) read_hook_();
    return records;
  }
  absl::StatusOr<std::vector<ResumeRow>> ListResumePoints(const std::string& job) override {
    return store_->ListResumePoints(job);
  }
  absl::StatusOr<SegmentRecord> FindSegment(const std::string& job, const std::string& object) override {
    return store_->FindSegment(job, object);
  }
  absl::StatusOr<Version> FindVersion(const std::string& job, int64_t number) override {
    return store_->FindVersion(job, number);
  }
  absl::StatusOr<std::vector<Version>> ListVersions(const std::string& job, int64_t after, int32_t limit) override {
    return store_->ListVersions(job, after, limit);
  }
  absl::StatusOr<std::vector<ExpiredObject>> ListExpired(int64_t last, int32_t limit) override {
    return store_->ListExpired(last, limit);
  }
  absl::StatusOr<int64_t> LastExpired() override { return store_->LastExpired(); }
  absl::StatusOr<std::vector<SegmentRecord>> ListCorrupt(const SegmentCursor& after, int32_t limit) override {
    return store_->ListCorrupt(after, limit);
  }
  absl::StatusOr<int64_t> CountCorrupt() override { return store_->CountCorrupt(); }
  absl::StatusOr<std::vector<EvaluationRow>> ListEvaluations(const EvaluationQuery& query) override {
    return store_->ListEvaluations(query);
  }
  absl::StatusOr<EvaluationRow> FindEvaluation(const std::string& id, const std::string& tenant) override {
    return store_->FindEvaluation(id, tenant);
  }
  absl::StatusOr<std::string> FindFinding(const std::string& job, const std::string& part) override {
    return store_->FindFinding(job, part);
  }
  absl::StatusOr<std::vector<FindingName>> ListFindings(const FindingName& after, int32_t limit) override {
    return store_->ListFindings(after, limit);
  }
  absl::StatusOr<bool> MayCommit(const ChainId& chain, int64_t lease_epoch) override {
    return store_->MayCommit(chain, lease_epoch);
  }
  absl::StatusOr<ChainReferences> ReferencesOfChain(const ChainId& chain) override {
    return store_->ReferencesOfChain(chain);
  }
  absl::StatusOr<std::vector<ChainSweep>> ListSweeps(int64_t after, int32_t limit) override {
    return store_->ListSweeps(after, limit);
  }
  absl::StatusOr<std::vector<std::string>> ListGarbage(const std::string& after, int32_t limit) override {
    if (hook_) hook_();
    return store_->ListGarbage(after, limit);
  }

 private:
  const std::unique_ptr<StateStore> store_;
  std::optional<absl::Status> failure_;
  bool full_ = false;
  Mutex mutex_;  // guards group_sizes_ while calls are in progress
  std::vector<int> group_sizes_;
  std::atomic<int64_t> segment_reads_ = 0, segments_read_ = 0;
  std::function<void()> hook_, read_hook_;
};

}  // namespace chainfleet
