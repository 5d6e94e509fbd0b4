// Cuts one chain's draws into parts that its worker sums separately, and joins the parts again, with the same bits as a
// sum of the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// Returns the lengths of the runs in which a worker adds `draws` draws (worker/numerics/predict/predictor.h), newest
// first: 1, 2, 4, ...; the last run takes the rest.
std::vector<int64_t> RunsOf(int64_t draws);

// Returns the lengths of the parts of one run, newest first: the last two inner runs, then one part with the earlier
// ones, which a worker adds first. A long chain therefore has only few parts.
std::vector<int64_t> PartsOf(int64_t run);

// Returns the number of parts of a chain whose draws are read in `runs`.
int64_t NumParts(const std::vector<int64_t>& runs);

// Returns the parts of each of `runs`, newest first; `runs` count the averaged draws of `chain`.
std::vector<ChainDraws> CutIntoParts(const ChainDraws& chain, const std::vector<int64_t>& runs);

// Returns the sums of each kind over all of `parts`, a worker's answer for CutIntoParts(..., runs) in the same order.
// If draws were unreadable, the bits may differ from a sum of the whole.
std::vector<PartialPrediction> JoinParts(const std::vector<PartialPrediction>& parts, const std::vector<int64_t>& runs);

}  // namespace chainfleet
