// Which pending chain goes to which free slot: a pure function, so that a fairer or denser policy is another function.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/ids.h"

namespace chainfleet {

// A wave of workers may arrive one by one: chains wait this long after the first, so that the others get their share.
inline constexpr absl::Duration kFleetSettles = absl::Milliseconds(500);

struct PendingChain {
  int32_t index = 0;
  std::string shunned_worker;  // taken only if no other has a free slot
};

struct QueuedJob {
  std::string job;
  std::vector<PendingChain> chains;     // by index
  std::map<std::string, int32_t> held;  // chains of this job by worker
  int64_t chain_bytes = 0;              // estimated memory of one
};

struct FreeSlots {
  std::string worker;
  int32_t slots = 0;
  std::string host;
  std::optional<int64_t> bytes;  // of memory that no chain is estimated to need; none: unknown
  bool idle = false;             // has no chain
};

struct Assignment {
  ChainId chain;
  std::string worker;
  bool operator==(const Assignment&) const = default;
};

// Jobs in the order given; each chain goes to the host with the fewest chains of its job, there to the worker with the
// fewest, then the most free slots, then the lowest id: the chains of a job spread evenly over hosts and workers. A
// worker without memory for a chain takes it only when it is idle, for the estimate may be wrong and there is no more
// to be had. At most `limit` assignments.
std::vector<Assignment> AssignInOrder(const std::vector<QueuedJob>& queue, const std::vector<FreeSlots>& free,
                                      int32_t limit);

// A worker that could be given to one suspect chain alone.
struct SoloWorker {
  std::string worker;
  int32_t chains = 0;  // that it would have to hand back first
};

struct SuspectChain {
  ChainId chain;
  std::string shunned_worker;  // taken only if there is no other
};

// Suspects in the order given; each gets the worker that has to hand back the fewest chains, then the lowest id.
std::vector<Assignment> AssignAlone(const std::vector<SuspectChain>& suspects, std::vector<SoloWorker> workers);

// How many workers may serve suspects at once: half the fleet goes on with what is innocent.
inline int32_t MaxSoloWorkers(int32_t usable) { return usable > 1 ? usable / 2 : 1; }

}  // namespace chainfleet
