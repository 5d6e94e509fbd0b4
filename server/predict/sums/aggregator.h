// Averages the workers' sums. Only here draws of different chains are combined.
#pragma once

#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// Averages over all draws of `partials`, which share n and K, come in any order and hold each (chain, kind) at most
// once. The sums are added in chain order, then kind order, so the bits do not depend on where or when they were made.
// Each kind of a step carries the step's weight: theta with theta_a is an equal mixture. job and versions are left
// empty.
//
// With `with_errors`, `errors` holds the delete-one-chain jackknife (Efron, 1982) over the chains with draws, each with
// all its kinds. It is unknown for fewer than two chains; server/predict/sums/batch_means.h computes it for one.
// draws_used counts a step once, however many kinds it has. Without any draw it is 0 and all arrays are empty,
// but the targets are set.
Prediction Average(std::vector<const PartialPrediction*> partials, bool with_errors);

}  // namespace chainfleet
