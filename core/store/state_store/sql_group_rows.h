// The rows of a group of changes. One statement before the first change reads the rows that the changes need, because
// each statement costs a network round trip. Rows that a change has written are read from the database again.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/store/state_store/sql_rows.h"

namespace chainfleet {

class SqlGroupRows final : public SqlRows {
 public:
  // `fetch_sql` comes from StoreOwnership; empty: nothing is prefetched.
  SqlGroupRows(SqlConnection* connection, std::string fetch_sql)
      : SqlRows(connection), fetch_sql_(std::move(fetch_sql)) {}

  // Called before the first change of a transaction.
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
    std::optional<DigestHex> digest;
    std::optional<JobIntent> intent;
    bool whole = false;        // includes the bytes of the resume point
    int64_t first_index = -1;  // first draw of the segment whose digest was read
    static void Fields(auto& self, auto&& visit) {
      visit("row", self.row);
      visit("resume_point", self.resume_point);
      visit("digest", self.digest);
      visit("intent", self.intent);
    }
  };
  const Ahead* Find(const ChainId& id) const;

  const std::string fetch_sql_;
  std::map<ChainId, Ahead> chains_;           // without chains that were written since
  std::map<std::string, JobIntent> intents_;  // without intents that may have changed since
};

}  // namespace chainfleet
