// Cuts one chain's draws into parts that its worker sums separately, and joins the parts again, with the same bits as a
// sum of the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// Lengths of the runs in which a worker adds `draws` draws (worker/numerics/predict/predictor.h), newest first: 1, 2,
// 4, ..., the last as long as is left.
std::vector<int64_t> RunsOf(int64_t draws);

// Lengths of the parts of one run, newest first: the last two of its inner runs, and before them the others, which a
// worker adds up first. A long chain therefore has only few parts.
std::vector<int64_t> PartsOf(int64_t run);

// The number of parts of a chain whose draws are read in `runs`.
int64_t NumParts(const std::vector<int64_t>& runs);

// The parts of each of `runs`, newest first; `runs` count the averaged draws of `chain`.
std::vector<ChainDraws> CutIntoParts(const ChainDraws& chain, const std::vector<int64_t>& runs);

// The sums of each kind over all of `parts`, a worker's answer for CutIntoParts(..., runs), in its order. If draws
// could not be read, the bits may differ from those of the whole.
std::vector<PartialPrediction> JoinParts(const std::vector<PartialPrediction>& parts, const std::vector<int64_t>& runs);

}  // namespace chainfleet
