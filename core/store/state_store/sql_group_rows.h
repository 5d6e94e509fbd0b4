// The rows of a group of changes: what the changes will ask of their chains is read by one statement before the first,
// where each statement is a trip over the network. What is written of a chain goes to the database, and so is read
// there again.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "core/store/state_store/sql_rows.h"

namespace chainfleet {

class SqlGroupRows final : public SqlRows {
 public:
  // `fetch_sql` is of StoreOwnership; null: nothing is read ahead.
  SqlGroupRows(SqlConnection* connection, const char* fetch_sql) : SqlRows(connection), fetch_sql_(fetch_sql) {}

  // Before the first change of a transaction.
  absl::Status Expect(std::span<const StateChange> changes);

  absl::StatusOr<std::optional<JobIntent>> FindIntent(const std::string& id) override;
  absl::Status UpdateJob(const JobRow& row) override;
  absl::StatusOr<bool> PurgeJob(const change::PurgeJob& page) override;
  absl::StatusOr<std::optional<ChainRow>> FindChain(const ChainId& id) override;
  absl::Status PutChain(const ChainRow& row) override;
  absl::StatusOr<std::optional<ResumePoint>> FindResumePoint(const ChainId& id) override;
  absl::StatusOr<std::optional<BlobRef>> FindResumeObject(const ChainId& id) override;
  absl::Status PutResumePoint(const ChainId& id, const ResumePoint& point) override;
  absl::StatusOr<std::optional<DigestHex>> FindDigest(const ChainId& id, int64_t first_index) override;
  absl::Status InsertSegment(const SegmentRecord& record) override;

 private:
  struct Ahead {
    ChainRow row;
    std::optional<ResumePoint> resume_point;
    bool whole = false;        // the resume point has its bytes
    int64_t first_index = -1;  // of the segment whose digest was read
    std::optional<DigestHex> digest;
  };
  const Ahead* Find(const ChainId& id) const;

  const char* const fetch_sql_;
  std::map<ChainId, Ahead> chains_;           // none that was written since
  std::map<std::string, JobIntent> intents_;  // none that may have changed since
};

}  // namespace chainfleet
