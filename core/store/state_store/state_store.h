// The transactional control state: jobs, chains, segment records, versions, data sets. It is the source of truth; the
// tables of server/control cache it.
//
// Opening a store takes it over: the generation rises by one, and earlier openers can no longer write.
//
// A store that was restored from a backup is opened as restored, once. It gets a new incarnation, and the generation,
// all lease epochs and the last version number of each job rise by kRestoredLeap, above every value that was given out
// after the backup. The caller finds unreferenced objects (server/control/restored_store).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "core/base/status.h"
#include "core/store/state_store/state_change.h"

namespace chainfleet {

enum class Opening { kUsual, kRestored };

inline constexpr int64_t kRestoredLeap = int64_t{1} << 20;

struct StoredJob {
  JobRow row;
  std::vector<ChainRow> chains;  // by index
  std::optional<Version> newest_version;
};

struct StoredAlias {
  Alias alias;
  Version version;  // the version that the alias names
  static void Fields(auto& self, auto&& visit) {
    visit("alias", self.alias);
    visit("snapshot", self.version);
  }
};

// A purged job. Older jobs of its name are found by id only.
struct RetiredName {
  std::string tenant, name;
  int64_t sequence = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("tenant", self.tenant);
    visit("name", self.name);
    visit("sequence", self.sequence);
  }
  bool operator==(const RetiredName&) const = default;
};

// Everything except segments and resume points: its size does not depend on the number of draws.
struct StoredState {
  std::vector<StoredJob> jobs;  // by sequence, without purged ones
  std::vector<RetiredName> retired_names;
  std::vector<Dataset> datasets;
  std::vector<StoredModel> models;
  std::vector<StoredAlias> aliases;  // by tenant and name
  std::vector<AccessToken> tokens;   // by SHA-256, with expired ones
};

// The facts about a chain that garbage collection needs, from one read.
struct ChainReferences {
  int64_t lease_epoch = 0;
  bool is_final = true;           // true for an unknown chain
  std::set<std::string> objects;  // segments, also expired ones, and the resume point
};

// The object of a segment that retention made a tombstone, until it is released.
struct ExpiredObject {
  int64_t ticket = 0;  // rises with each expiry
  std::string object;
  static void Fields(auto& self, auto&& visit) {
    visit("ticket", self.ticket);
    visit("object", self.object);
  }
};

// A chain that is queued for a garbage sweep.
struct ChainSweep {
  int64_t ticket = 0;  // rises with each queueing
  ChainId chain;
  static void Fields(auto& self, auto&& visit) {
    visit("ticket", self.ticket);
    visit("job", self.chain.job);
    visit("chain", self.chain.index);
  }
};

// The newest resume point of a chain, without its bytes.
struct ResumeRow {
  int32_t chain = 0;
  DigestHex last_digest;  // newest segment of the chain
  int64_t step = 0;
  DigestHex sha256;
  std::optional<ResumeProof> proof;
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("last_digest", self.last_digest);
    visit("step", self.step);
    visit("sha256", self.sha256);
    visit("proof", self.proof);
  }
};

// A part of a job's findings.
struct FindingName {
  std::string job, part;
  static void Fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("part", self.part);
  }
  bool operator==(const FindingName&) const = default;
};

// Thread-safe; every call may block. Errors of reads: UNAVAILABLE / STORE_UNREACHABLE (may be retried), INTERNAL (with
// the database's message), NOT_FOUND where documented.
class StateStore {
 public:
  virtual ~StateStore() = default;

  // Random, created with the store, part of every object name.
  virtual std::string incarnation() const = 0;
  virtual int64_t generation() const = 0;
  // The incarnations before a restore; older objects have them in their names.
  virtual absl::StatusOr<std::vector<std::string>> FormerIncarnations() = 0;

  // Applies the changes in order in ONE transaction; results are in the same order. A change whose precondition fails
  // fails alone. `wall` becomes creation, commit or finishing time. RESOURCE_EXHAUSTED / DISK_FULL in every result:
  // nothing was written, and the call may be retried. If the call itself fails, the caller must end and reload:
  // UNAVAILABLE / NOT_LEADER (another process opened the store), or any code with OUTCOME_UNKNOWN. SQL stores then
  // return the same error for every later call.
  virtual absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const StateChange> changes, absl::Time wall) = 0;

  virtual absl::StatusOr<StoredState> Load() = 0;

  // Records in (chain, first index) order, at most `limit`, including tombstones and corrupt ones.
  struct SegmentQuery {
    std::string job;
    std::optional<int32_t> chain;  // nullopt: all
    int32_t after_chain = -1;      // after (after_chain, after_first_index)
    int64_t after_first_index = -1;
    int32_t limit = limits::kSegmentsPerRead;  // other reads wait for this one, and a record may have megabytes
    bool live_only = false;                    // skips tombstones
  };
  virtual absl::StatusOr<std::vector<SegmentRecord>> ListSegments(const SegmentQuery& query) = 0;
  // In any order; chains without a resume point are left out.
  virtual absl::StatusOr<std::vector<ResumeRow>> ListResumePoints(const std::string& job) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<SegmentRecord> FindSegment(const std::string& job, const std::string& object) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<Version> FindVersion(const std::string& job, int64_t number) = 0;
  // Versions with numbers above `after`, in order, at most `limit`.
  virtual absl::StatusOr<std::vector<Version>> ListVersions(const std::string& job, int64_t after, int32_t limit) = 0;

  // Expired objects that are not released, with tickets up to `last`, in order, at most `limit`.
  virtual absl::StatusOr<std::vector<ExpiredObject>> ListExpired(int64_t last, int32_t limit) = 0;
  // The highest ticket of an expired object; 0 if none.
  virtual absl::StatusOr<int64_t> LastExpired() = 0;

  // Corrupt segments that are not deleted, in (job, chain, first index) order after `after`, at most `limit`.
  struct SegmentCursor {
    ChainId chain{"", -1};
    int64_t first_index = -1;
  };
  virtual absl::StatusOr<std::vector<SegmentRecord>> ListCorrupt(const SegmentCursor& after, int32_t limit) = 0;
  virtual absl::StatusOr<int64_t> CountCorrupt() = 0;

  // Without results.
  virtual absl::StatusOr<std::vector<EvaluationRow>> ListEvaluations(const EvaluationQuery& query) = 0;
  // NOT_FOUND, also for an evaluation of another tenant, whose result is not read: the time tells nothing of its size.
  virtual absl::StatusOr<EvaluationRow> FindEvaluation(const std::string& id, const std::string& tenant) = 0;

  // A part that change::KeepFindings has kept. NOT_FOUND.
  virtual absl::StatusOr<std::string> FindFinding(const std::string& job, const std::string& part) = 0;
  // The parts of all jobs, by job and part after `after`, at most `limit`.
  virtual absl::StatusOr<std::vector<FindingName>> ListFindings(const FindingName& after, int32_t limit) = 0;

  // True if a commit under this epoch is still possible: the epoch is the newest, the chain is not final, and its job
  // is not purged.
  virtual absl::StatusOr<bool> MayCommit(const ChainId& chain, int64_t lease_epoch) = 0;
  virtual absl::StatusOr<ChainReferences> ReferencesOfChain(const ChainId& chain) = 0;
  // Queued sweeps with tickets above `after`, in order, at most `limit`.
  virtual absl::StatusOr<std::vector<ChainSweep>> ListSweeps(int64_t after, int32_t limit) = 0;
  // Superseded resume points, and objects that no data set, model or upload has any more, in byte order after `after`,
  // at most `limit`.
  virtual absl::StatusOr<std::vector<std::string>> ListGarbage(const std::string& after, int32_t limit) = 0;
};

// Returns false to end the visit.
using SegmentVisitor = std::function<absl::StatusOr<bool>(SegmentRecord)>;

// Visits the segments of the query in order; `store` is a StateStore or SqlRows. Reads `query.limit` records first.
// While records are small, each read takes four times as many as the one before, at most `most_per_read`.
absl::Status VisitSegments(auto* store, StateStore::SegmentQuery query, const SegmentVisitor& visit,
                           int32_t most_per_read = limits::kSegmentsPerRead) {
  for (bool last = false; !last;) {
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<SegmentRecord> page, store->ListSegments(query));
    last = static_cast<int32_t>(page.size()) < query.limit;
    int64_t draws = 0;
    for (SegmentRecord& record : page) {
      draws += record.segment.num_draws();
      query.after_chain = record.chain.index;
      query.after_first_index = record.segment.first_index;
      CHAINFLEET_ASSIGN_OR_RETURN(const bool more, visit(std::move(record)));
      if (!more) return absl::OkStatus();
    }
    // A record of many draws is large.
    const bool small = draws < limits::kMaxSegmentDraws;
    query.limit = std::min(most_per_read, small ? 4 * std::min(query.limit, most_per_read) : limits::kSegmentsPerRead);
  }
  return absl::OkStatus();
}

// The NOT_FOUND error of every store.
inline absl::Status NoSuchFinding(const std::string& job, const std::string& part) {
  return absl::NotFoundError("job " + job + " left no findings named \"" + part + "\"");
}

}  // namespace chainfleet
