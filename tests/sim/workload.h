// The jobs of a run and what their users do with them, drawn from the seed; calls are repeated until they are answered.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/domain/snapshot.h"
#include "tests/sim/calm_run.h"
#include "tests/sim/world.h"

namespace chainfleet {

// For one thread; the world outlives it and its tasks.
class Workload {
 public:
  explicit Workload(World* world);

  // Jobs and wishes come at their times from now on.
  void Begin();

  struct Job {
    size_t kind = 0;  // of the catalogue
    JobSpec spec;
    std::string tenant, request_id;
    std::string id;  // once it is known
    absl::Duration submit_after;
    struct Wish {
      absl::Duration after;                // the one before
      JobIntent intent = JobIntent::kRun;  // unless more
      std::optional<int32_t> chains = {};  // are asked for
    };
    std::vector<Wish> wishes;  // in order
    size_t wishes_done = 0;
    JobIntent intent = JobIntent::kRun;  // as the server last said OK to
    int32_t chains = 0;                  // of each point, the same
    // Readable draws of the version at the time that an alias named it; null: no alias names it.
    std::shared_ptr<std::set<std::pair<ChainId, int64_t>>> named;
    ChainState calm_end() const;  // of a chain that nobody stops
    bool wished(JobIntent wish) const;
  };
  const std::vector<Job>& jobs() const { return jobs_; }

  // Every wish was answered.
  bool answered() const;

  // Versions that users were told and that differ from the store, one line each.
  std::vector<std::string> WrongVersions(StateStore* state) const;

  // Errors of retention, one line each. REQUIRES: no work is pending.
  std::vector<std::string> WrongRetention(StateStore* state) const;
  // Draws that readers missed, one line each.
  const std::vector<std::string>& missed() const { return missed_; }

  // The calm path of a chain of this run; null if its job was not made.
  const DrawPath* CalmPathOf(const ChainId& chain) const;

 private:
  using Ask = std::function<void(Coordinator*, Reply<JobView>)>;
  using Settled = std::function<bool(const absl::StatusOr<JobView>&)>;

  Job DrawJob(int number);
  void Submit(Job* job);
  void NextWish(Job* job);
  void PinVersions();
  // Somebody reads the draws of the version as long as a call may.
  void Read(const Snapshot& pinned);
  // One alias for each job, which stays.
  void NameVersion(Job* job);
  std::vector<SegmentRecord> ReadableOf(const Snapshot& snapshot);
  // Until `settled` says that the answer is one.
  void Try(Ask ask, Settled settled);

  World* const world_;
  std::vector<Job> jobs_;
  std::vector<Snapshot> pinned_;  // as answered
  std::vector<std::string> missed_;
};

}  // namespace chainfleet
