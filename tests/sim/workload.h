// The jobs of a run and their users' calls, from the seed. Users repeat calls until they get an answer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/domain/version.h"
#include "tests/sim/calm_run.h"
#include "tests/sim/world.h"

namespace chainfleet {

// For one thread; the world outlives it and its tasks.
class Workload {
 public:
  explicit Workload(World* world);

  // Submits jobs and wishes at their times from now on.
  void Begin();

  struct Job {
    size_t kind = 0;  // index in the catalogue
    JobSpec spec;
    std::string tenant, request_id;
    std::string id;  // set once it is known
    absl::Duration submit_after;
    struct Wish {
      absl::Duration after;                // since the previous wish
      JobIntent intent = JobIntent::kRun;  // used unless `chains` is set
      std::optional<int32_t> chains = {};  // number of chains to scale to
    };
    std::vector<Wish> wishes;  // in order
    size_t wishes_done = 0;
    JobIntent intent = JobIntent::kRun;  // the last intent that the server accepted
    int32_t chains = 0;                  // chains of each point, by the last accepted scale
    // The readable draws of the version when an alias named it; null: no alias names it.
    std::shared_ptr<std::set<std::pair<ChainId, int64_t>>> named;
    ChainState calm_end() const;  // the state that a chain reaches unless a user stops it
    bool wished(JobIntent wish) const;
  };
  const std::vector<Job>& jobs() const { return jobs_; }

  // Returns true if every wish got its answer.
  bool answered() const;

  // Returns versions whose reply differs from the store, one line each.
  std::vector<std::string> WrongVersions(StateStore* state) const;

  // Returns errors of retention, one line each. REQUIRES: no work is pending.
  std::vector<std::string> WrongRetention(StateStore* state) const;
  // Returns the draws that readers missed, one line each.
  const std::vector<std::string>& missed() const { return missed_; }

  // Returns the calm path of a chain of this run; null if its job was not created.
  const DrawPath* CalmPathOf(const ChainId& chain) const;

 private:
  using Ask = std::function<void(Coordinator*, Reply<JobView>)>;
  using Settled = std::function<bool(const absl::StatusOr<JobView>&)>;

  Job DrawJob(int number);
  void Submit(Job* job);
  void NextWish(Job* job);
  void PinVersions();
  // Reads the draws of the version for as long as a call may take.
  void Read(const Version& pinned);
  // Sets one alias for each job, which stays.
  void NameVersion(Job* job);
  std::vector<SegmentRecord> ReadableOf(const Version& version);
  // Repeats `ask` until `settled` accepts the answer.
  void Try(Ask ask, Settled settled);

  World* const world_;
  std::vector<Job> jobs_;
  std::vector<Version> pinned_;  // versions from the replies
  std::vector<std::string> missed_;
};

}  // namespace chainfleet
