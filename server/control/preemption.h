// Chooses running chains that yield to waiting ones of a higher tier: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/domain/scheduling_spec.h"
#include "server/control/scheduling_policy.h"

namespace chainfleet {

// Chains of one job for which no worker has room.
struct WaitingChains {
  Priority tier = Priority::kNormal;
  int32_t count = 0;
  int64_t chain_bytes = 0;  // estimated memory of one chain
  std::string tenant = {};
};

struct RunningChain {
  ChainId chain;
  std::string worker;
  Priority tier = Priority::kNormal;
  int64_t bytes = 0;
};

// `waiting`: highest tier first. `running`: in the order in which chains must yield, lowest tier first; their workers
// are in `fleet`, whose free slots and memory are used before any chain yields. A chain yields only if it, together
// with other chains of its worker that may have to yield, makes room for a waiting chain: a slot, and memory.
std::vector<ChainId> ChooseYielding(const std::vector<WaitingChains>& waiting, const std::vector<RunningChain>& running,
                                    const std::vector<FreeSlots>& fleet);

}  // namespace chainfleet
