// The observed events of a run's chains, in the order in which they became durable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/domain/draw.h"

namespace chainfleet {

// Grants and acceptances are those of the store, in the order of its transactions, where that can be seen; what was
// acknowledged is what a worker could hear. Not thread-safe.
class History {
 public:
  struct Event {
    // kGranted: a lease, or the same again to its holder. kAccepted: a commit, not one repeated. kAcknowledged: a
    // commit that the coordinator said OK to, repeated or not.
    enum class Kind { kGranted, kAccepted, kAcknowledged } kind = Kind::kGranted;
    int64_t lease_epoch = 0;
    std::string holder = {};  // incarnation of the worker
    int64_t step = 0;         // of the resume point
    int64_t first_index = 0;  // of the segment
    DigestHex digest = {};    // of the segment, empty without one
  };

  void Add(const ChainId& chain, Event event) { events_[chain].push_back(std::move(event)); }
  const std::map<ChainId, std::vector<Event>>& events() const { return events_; }

 private:
  std::map<ChainId, std::vector<Event>> events_;
};

}  // namespace chainfleet
