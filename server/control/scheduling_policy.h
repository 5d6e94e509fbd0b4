// Assigns pending chains to free slots by pure functions, so that a fairer or denser policy is another
// function.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/ids.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

struct PendingChain {
  int32_t index = 0;
  std::string avoided_worker;  // used only if no other worker has a free slot
};

struct QueuedJob {
  std::string job, tenant;
  std::vector<PendingChain> chains;     // by index
  std::map<std::string, int32_t> held;  // chains of this job by worker
  int64_t chain_bytes = 0;              // estimated memory of one chain
};

// The free slots of one worker.
struct FreeSlots {
  std::string worker;
  int32_t slots = 0;
  std::string host;
  std::optional<int64_t> bytes;  // memory without estimated use; nullopt: unknown
  int32_t chains = 0;            // chains on the worker
  Admission admission = {};      // says whose chains it takes

  // A worker without memory for a chain takes the chain only when it has no other: the estimate may be wrong, and no
  // worker could offer more.
  bool Fits(int64_t chain_bytes) const { return slots > 0 && (!bytes || *bytes >= chain_bytes || chains == 0); }
  // Adds `more` chains, which need `chain_bytes` together; both are negative for chains that leave.
  void Take(int32_t more, int64_t chain_bytes) {
    slots -= more;
    chains += more;
    if (bytes) *bytes -= chain_bytes;
  }
};

struct Assignment {
  ChainId chain;
  std::string worker;
  bool operator==(const Assignment&) const = default;
};

// The free slots of a fleet while one job after the other takes its part. Each chain goes to the host with the fewest
// chains of its job, there to the worker with the fewest, then the most free slots, then the lowest id, so that the
// chains of a job spread evenly over hosts and workers. The cost of a job depends on its own chains, not on the size of
// the fleet. Not thread-safe.
class Placement {
 public:
  // Pass workers without a free slot, too: the chains on them count for their hosts.
  explicit Placement(std::vector<FreeSlots> fleet);

  int64_t slots() const { return slots_; }
  // Returns false if a chain of the tenant of this size or smaller has already found no place.
  bool MayFit(int64_t chain_bytes, const std::string& tenant) const {
    const auto found = too_big_.find(tenant);
    return slots_ > 0 && (found == too_big_.end() || chain_bytes < found->second);
  }

  // Places nothing more on the worker.
  void Close(const std::string& worker);

  // Places the first chains of `job`, at most `limit`, until one chain fits nowhere.
  std::vector<Assignment> Place(const QueuedJob& job, size_t limit = std::numeric_limits<size_t>::max());

 private:
  using WorkerRank = std::tuple<int32_t, int32_t, size_t>;  // chains of the job, -free slots, place in workers_
  struct Host {
    int32_t held = 0;           // chains of the job
    std::set<WorkerRank> free;  // workers with slots, the best first
  };
  struct Worker {
    FreeSlots free;
    size_t host = 0;
    int32_t held = 0;  // chains of the job
  };

  WorkerRank RankOf(size_t worker) const;
  std::tuple<int32_t, WorkerRank> RankOf(const Host& host) const { return {host.held, *host.free.begin()}; }
  std::optional<size_t> Find(const std::string& worker) const;
  std::optional<size_t> Choose(const QueuedJob& job, const std::string& avoided_worker) const;
  // Adds `chains` of the job to the worker, which lose `taken` of its free slots.
  void Hold(size_t worker, int32_t chains, int32_t taken, int64_t bytes);

  std::vector<Worker> workers_;  // by id
  std::vector<Host> hosts_;
  std::set<std::tuple<int32_t, WorkerRank>> order_;  // hosts with free workers, by the best worker of each
  int64_t slots_ = 0;
  std::map<std::string, int64_t> too_big_;  // by tenant; least size that has found no place
};

// A worker that could run one suspect chain alone.
struct SoloWorker {
  std::string worker;
  int32_t chains = 0;  // chains that it must hand back first
  Admission admission = {};
};

struct SuspectChain {
  ChainId chain;
  std::string avoided_worker;  // used only if there is no other worker
  std::string tenant = {};
};

// Assigns each suspect, in order, the worker that must hand back the fewest chains, then the one with the lowest id.
std::vector<Assignment> AssignAlone(const std::vector<SuspectChain>& suspects, std::vector<SoloWorker> workers);

// Returns how many workers may serve suspects at once. Half of the fleet stays for other chains.
inline int32_t MaxSoloWorkers(int32_t usable) { return usable > 1 ? usable / 2 : 1; }

}  // namespace chainfleet
