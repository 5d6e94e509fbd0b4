// The Monte Carlo error of an average over one chain, from contiguous blocks of its draws.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

inline constexpr int64_t kMinBlocks = 4;  // with fewer blocks the error is unknown

// Standard error of each score. `parts` are sums over adjacent runs of one chain's draws, newest first, of one or
// several kinds; the i-th part of each kind covers the same steps. Parts are joined, in order, into blocks of at least
// an eighth of the draws each. The error is the delete-one-block jackknife for blocks of unequal weight (Busing, Meijer
// & van der Leeden, 1999, "Delete-m jackknife for unequal m"); for a mean over equal blocks it equals the batch-means
// error. All scores are empty (unknown) for fewer than kMinBlocks blocks.
PredictiveScores BatchMeansErrors(const std::vector<PartialPrediction>& parts);

}  // namespace chainfleet
