// The Monte Carlo error of an average over one chain: from contiguous blocks of its draws.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

inline constexpr int64_t kMinBlocks = 4;  // of fewer no error is known

// Standard error of each score. `parts` are sums over neighbouring runs of one chain's draws, the newest first, of one
// or several kinds: the i-th part of each kind is over the same steps. Parts are joined, in order, to blocks of at
// least an eighth of the draws each. Over these runs a delete-one-block jackknife that allows for blocks of unequal
// weight (Busing, Meijer & van der Leeden, 1999, "Delete-m jackknife for unequal m"); of a mean over equal blocks that
// is the batch-means error. All empty (unknown) for fewer than kMinBlocks blocks.
PredictiveScores BatchMeansErrors(const std::vector<PartialPrediction>& parts);

}  // namespace chainfleet
