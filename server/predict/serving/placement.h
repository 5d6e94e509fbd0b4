// Which worker is asked first for which chains.
#pragma once

#include <string>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

struct ChainGroup {
  std::string worker;  // empty if there are no workers
  std::vector<ChainDraws> chains;
};

// One group per worker that gets chains, at most ceil(chains / workers) in each. Each chain goes, in order, to the
// worker of highest hash(worker, chain) that has room (Thaler & Ravishankar, "Using name-based mappings to increase hit
// rates", 1998; with bounded loads), so the same workers keep the same draws cached and a worker that comes or goes
// moves few. Several entries of one chain, next to each other, count as one and stay together. Pure; without workers
// all chains form one group.
std::vector<ChainGroup> GroupChains(const std::vector<ChainDraws>& chains, const std::vector<std::string>& workers);

}  // namespace chainfleet
