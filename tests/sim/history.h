// The observed events of a run's chains, in the order in which they became durable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/domain/draw.h"

namespace chainfleet {

// Grants and acceptances have the order of the store's transactions, where the order is visible; acknowledgements are
// replies that a worker could receive. Not thread-safe.
class History {
 public:
  struct Event {
    // kGranted: a lease, or a repeated grant to its holder. kAccepted: a commit that is not a replay. kAcknowledged: a
    // commit that the coordinator answered with OK, replay or not.
    enum class Kind { kGranted, kAccepted, kAcknowledged } kind = Kind::kGranted;
    int64_t lease_epoch = 0;
    std::string holder = {};  // incarnation of the worker
    int64_t step = 0;         // step of the resume point
    int64_t first_index = 0;  // first index of the segment
    DigestHex digest = {};    // digest of the segment; empty without one
  };

  void Add(const ChainId& chain, Event event) { events_[chain].push_back(std::move(event)); }
  const std::map<ChainId, std::vector<Event>>& events() const { return events_; }

 private:
  std::map<ChainId, std::vector<Event>> events_;
};

}  // namespace chainfleet
