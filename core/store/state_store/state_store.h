// The transactional control state: jobs, chains, segment records, versions, data sets. It is the truth; the tables of
// server/control are its cache.
//
// Opening a store takes it over: the generation rises by one, and whoever opened it before can no longer write.
//
// A store that was put back from a backup is opened as restored, once: it gets another incarnation, and
// the generation, all lease epochs and the last version number of each job rise by kRestoredLeap, beyond all that were
// given out after the backup was taken.
// Which objects nobody has any more the caller finds out (server/control/restored_store).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/store/state_store/state_change.h"

namespace chainfleet {

enum class Opening { kUsual, kRestored };

inline constexpr int64_t kRestoredLeap = int64_t{1} << 20;

struct StoredJob {
  JobRow row;
  std::vector<ChainRow> chains;  // by index
  std::optional<Snapshot> newest_snapshot;
};

struct StoredAlias {
  Alias alias;
  Snapshot snapshot;  // the one it names
};

// A purged job: those of its name before it answer to their ids alone.
struct RetiredName {
  std::string tenant, name;
  int64_t sequence = 0;
  bool operator==(const RetiredName&) const = default;
};

// Everything but segments and resume points: it does not grow with the number of draws.
struct StoredState {
  std::vector<StoredJob> jobs;  // not purged ones, by sequence
  std::vector<RetiredName> retired_names;
  std::vector<Dataset> datasets;
  std::vector<StoredModel> models;
  std::vector<StoredAlias> aliases;  // by tenant and name
};

// What garbage collection must know of a chain, from one read.
struct ChainReferences {
  int64_t lease_epoch = 0;
  bool is_final = true;           // of an unknown chain: true
  std::set<std::string> objects;  // of segments, of expired ones too, and of the resume point
};

// The object of a segment that retention made a tombstone, until it is released.
struct ExpiredObject {
  int64_t ticket = 0;  // rises with each expiry
  std::string object;
};

// A chain whose objects wait to be looked through.
struct ChainSweep {
  int64_t ticket = 0;  // rises with each queueing
  ChainId chain;
};

// Thread-safe; every call may block. Errors of reads: UNAVAILABLE / STORE_UNREACHABLE (may be repeated),
// INTERNAL (the database's own words), NOT_FOUND where said.
class StateStore {
 public:
  virtual ~StateStore() = default;

  // Random, made with the store, part of every object name.
  virtual std::string incarnation() const = 0;
  virtual int64_t generation() const = 0;
  // Those that it had before it was restored: older objects have their names.
  virtual absl::StatusOr<std::vector<std::string>> FormerIncarnations() = 0;

  // Applies the changes in order in ONE transaction; results come in the same order. A change whose precondition fails
  // fails alone. `wall` becomes their creation, commit or finishing time. RESOURCE_EXHAUSTED / DISK_FULL in every
  // result: nothing was written, it may be repeated. Not OK as a whole, and the caller must end and reload: UNAVAILABLE
  // / NOT_LEADER (someone else opened the store), any code with OUTCOME_UNKNOWN; of stores in SQL every later call says
  // the same.
  virtual absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const StateChange> changes, absl::Time wall) = 0;

  virtual absl::StatusOr<StoredState> Load() = 0;

  // Records in (chain, first index) order, at most `limit`, tombstones and corrupt ones too.
  struct SegmentQuery {
    std::string job;
    std::optional<int32_t> chain;  // none: all
    int32_t after_chain = -1;      // beyond (after_chain, after_first_index)
    int64_t after_first_index = -1;
    int32_t limit = 1000;
    bool live_only = false;  // tombstones left out
  };
  virtual absl::StatusOr<std::vector<SegmentRecord>> ListSegments(const SegmentQuery& query) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<SegmentRecord> FindSegment(const std::string& job, const std::string& object) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<Snapshot> FindSnapshot(const std::string& job, int64_t number) = 0;
  // Those beyond the number `after`, in order, at most `limit`.
  virtual absl::StatusOr<std::vector<Snapshot>> ListSnapshots(const std::string& job, int64_t after, int32_t limit) = 0;

  // What was expired and not released, in order, at most `limit`, with tickets up to `last`.
  virtual absl::StatusOr<std::vector<ExpiredObject>> ListExpired(int64_t last, int32_t limit) = 0;
  // The highest ticket there; 0 if none.
  virtual absl::StatusOr<int64_t> LastExpired() = 0;

  // Marked ones that are not deleted, in (job, chain, first index) order beyond `after`, at most `limit`.
  struct SegmentCursor {
    ChainId chain{"", -1};
    int64_t first_index = -1;
  };
  virtual absl::StatusOr<std::vector<SegmentRecord>> ListCorrupt(const SegmentCursor& after, int32_t limit) = 0;
  virtual absl::StatusOr<int64_t> CountCorrupt() = 0;

  // Without their results.
  virtual absl::StatusOr<std::vector<EvaluationRow>> ListEvaluations(const EvaluationQuery& query) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<EvaluationRow> FindEvaluation(const std::string& id) = 0;

  // A part of what change::KeepFindings kept. NOT_FOUND.
  virtual absl::StatusOr<std::string> FindFinding(const std::string& job, const std::string& part) = 0;

  // Whether a commit under this epoch may still come: it is the newest, the chain not final, its job not purged.
  virtual absl::StatusOr<bool> MayCommit(const ChainId& chain, int64_t lease_epoch) = 0;
  virtual absl::StatusOr<ChainReferences> ReferencesOfChain(const ChainId& chain) = 0;
  // The queue of QueueSweep beyond the ticket `after`, in order, at most `limit`.
  virtual absl::StatusOr<std::vector<ChainSweep>> ListSweeps(int64_t after, int32_t limit) = 0;
  // Superseded resume points and objects that no data set, model or upload has any more, in byte order beyond `after`,
  // at most `limit`.
  virtual absl::StatusOr<std::vector<std::string>> ListGarbage(const std::string& after, int32_t limit) = 0;
};

// In the words of every store.
inline absl::Status NoSuchFinding(const std::string& job, const std::string& part) {
  return absl::NotFoundError("job " + job + " left no findings named \"" + part + "\"");
}

}  // namespace chainfleet
