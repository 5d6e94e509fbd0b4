// Which running chains give way to waiting ones of a higher tier: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/domain/scheduling_spec.h"
#include "server/control/scheduling_policy.h"

namespace chainfleet {

// Chains of one job that found no place.
struct WaitingChains {
  Priority tier = Priority::kNormal;
  int32_t count = 0;
  int64_t chain_bytes = 0;  // estimated memory of one
};

struct RunningChain {
  ChainId chain;
  std::string worker;
  Priority tier = Priority::kNormal;
  int64_t bytes = 0;
};

// `waiting`: the highest tier first. `running`: in the order in which they have to give way, the lowest tier first;
// their workers are in `fleet`, whose free slots and memory are taken before anybody gives way. A chain gives way only
// if, with others of its worker that may have to, it makes room for a waiting one: a slot, and memory for it.
std::vector<ChainId> ChooseYielding(const std::vector<WaitingChains>& waiting, const std::vector<RunningChain>& running,
                                    const std::vector<FreeSlots>& fleet);

}  // namespace chainfleet
