// Assigns chains to preferred workers.
#pragma once

#include <string>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

struct ChainGroup {
  std::string worker;  // empty if there are no workers
  std::vector<ChainDraws> chains;
};

// One group per worker that gets chains, with at most ceil(chains / workers) chains each. Each chain goes, in order, to
// the worker with the highest hash(worker, chain) that has room (Thaler & Ravishankar, "Using name-based mappings to
// increase hit rates", 1998; with bounded loads). The same workers therefore cache the same draws, and a worker that
// joins or leaves moves few. Adjacent entries of one chain count as one and stay together. Pure; without workers all
// chains form one group.
std::vector<ChainGroup> GroupChains(const std::vector<ChainDraws>& chains, const std::vector<std::string>& workers);

}  // namespace chainfleet
