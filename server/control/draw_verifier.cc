#include "server/control/draw_verifier.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/store/draw_codec/sha256.h"
#include "server/control/upkeep.h"

namespace chainfleet {
namespace {

constexpr int64_t kReadBytes = 4 * limits::kMiB;

// Reads in pieces: an object may be too large to hold in memory.
bool ReadsBack(const BlobStore& blobs, const BlobRef& object) {
  const absl::StatusOr<int64_t> size = blobs.SizeBytes(object.name);
  if (!size.ok() || *size != object.size_bytes) return false;
  Sha256 hash;
  for (int64_t offset = 0; offset < *size; offset += kReadBytes) {
    const absl::StatusOr<std::string> bytes = blobs.GetRange(object.name, offset, kReadBytes);
    if (!bytes.ok()) return false;
    hash.Update(bytes->data(), bytes->size());
  }
  return hash.Hex() == object.sha256;
}

}  // namespace

struct DrawVerifier::State {
  Executor* const executor;
  StateStore* const store;
  StateWriter* const writer;
  BlobStore* const blobs;
  Mutex verifying;
  StateStore::SegmentCursor cursor CHAINFLEET_GUARDED_BY(verifying);

  absl::StatusOr<int64_t> Verify(int64_t budget_bytes) {
    MutexLock lock(&verifying);
    int64_t cleared = 0;
    while (budget_bytes > 0) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<SegmentRecord> records,
                                  store->ListCorrupt(cursor, limits::kSegmentsPerRead));
      for (const SegmentRecord& record : records) {
        if (budget_bytes <= 0) return cleared;
        CHAINFLEET_ASSIGN_OR_RETURN(const bool clean, VerifyOne(record));
        cleared += clean;
        budget_bytes -= std::max<int64_t>(1, record.segment.object.size_bytes);
        cursor = {record.chain, record.segment.first_index};
      }
      if (static_cast<int32_t>(records.size()) == limits::kSegmentsPerRead) continue;
      cursor = {};
      break;
    }
    return cleared;
  }

  // A concurrent reader that finds the object damaged marks it again, before or after this change.
  absl::StatusOr<bool> VerifyOne(const SegmentRecord& record) {
    const BlobRef& object = record.segment.object;
    if (!ReadsBack(*blobs, object)) return false;
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ApplyResult> results,
                                writer->Commit({change::MarkCorrupt{record.chain.job, object.name, false}}));
    CHAINFLEET_RETURN_IF_ERROR(results.front().status);
    Log(LogLevel::kInfo, "corrupt mark removed: the draw reads back correctly",
        {{"job", record.chain.job},
         {"chain", record.chain.index},
         {"lease_epoch", record.lease_epoch},
         {"worker", record.author.worker},
         {"object", object.name}});
    return true;
  }
};

DrawVerifier::DrawVerifier(Executor* executor, StateStore* store, StateWriter* writer, BlobStore* blobs)
    : state_(new State{executor, store, writer, blobs}) {}

void DrawVerifier::Start(absl::Duration interval) {
  RunEvery(state_->executor, absl::ZeroDuration(), interval, "verifying corrupt draws", std::weak_ptr<State>(state_),
           [](State* state) { return state->Verify(limits::kVerifyBytes).status(); });
}

absl::StatusOr<int64_t> DrawVerifier::Verify(int64_t budget_bytes) { return state_->Verify(budget_bytes); }

}  // namespace chainfleet
