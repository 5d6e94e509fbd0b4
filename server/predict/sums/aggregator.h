// From the workers' sums to averages: the one place where draws of different chains meet.
#pragma once

#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// Averages over all draws of `partials`, which share n and K, come in any order and hold each (chain, kind) at most
// once. Added in chain order, then kind order, so the bits do not depend on where or when they were made. Each kind of
// a step carries the step's weight: theta with theta_a is an equal mixture. job and versions are left empty.
//
// errors, if wanted: delete-one-chain jackknife (Efron, 1982) over the chains with draws, each with all its kinds;
// unknown for fewer than two (of one server/predict/sums/batch_means.h tells it). draws_used counts a step once,
// however many of its kinds are there; without any draw it is 0 and all arrays are empty.
Prediction Average(std::vector<const PartialPrediction*> partials, bool with_errors);

}  // namespace chainfleet
