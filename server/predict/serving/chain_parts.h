// One chain's draws, summed in parts by its worker, and the parts put together again: bit for bit what the worker gives
// for the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// Lengths of the runs that a worker adds `draws` draws in (worker/numerics/predict/predictor.h), the newest first: 1,
// 2, 4,
// ..., the last as long as is left.
std::vector<int64_t> RunsOf(int64_t draws);

// Lengths of the parts that one run is cut into, the newest first: the last two of the runs inside it, and before them
// the others, which a worker adds up before it goes on. So a long chain is not many parts.
std::vector<int64_t> PartsOf(int64_t run);

// How many parts a chain is cut into whose draws are asked for in `runs`.
int64_t NumParts(const std::vector<int64_t>& runs);

// The parts of each of `runs`, which count the averaged draws of `chain`; the newest first.
std::vector<ChainDraws> CutIntoParts(const ChainDraws& chain, const std::vector<int64_t>& runs);

// The sums of each kind over all of `parts`, which are what a worker answered for CutIntoParts(..., runs), in its
// order. Where draws could not be read the bits may differ from those of the whole.
std::vector<PartialPrediction> JoinParts(const std::vector<PartialPrediction>& parts, const std::vector<int64_t>& runs);

}  // namespace chainfleet
