// Averages in which chains count by given weights, in place of the number of their draws.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// Weights by chain index, not negative. Chains that are not named have weight 0. A query without any leaves draws as
// they count.
using ChainShares = std::map<int32_t, double>;

// Scales the sums and members of each chain, over all its kinds, so that their weights sum to the chain's share. Chains
// of weight 0 are left out. Scores of single draws against targets stay as they are. REQUIRES: `shares` is not empty.
std::vector<PartialPrediction> Weighed(std::vector<PartialPrediction> partials, const ChainShares& shares);

}  // namespace chainfleet
