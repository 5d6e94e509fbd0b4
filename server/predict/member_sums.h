// What the aggregate of one block of rows needs from single draws: their answers in order, sums of several waves of
// draws.
#pragma once

#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// Of partials that have members, in chain order, then kind order; draws in order, those without any left out. The
// second points into `partials`.
std::vector<Members> MembersOf(const std::vector<const PartialPrediction*>& partials);
std::vector<const Members*> OrderedMembers(const std::vector<const PartialPrediction*>& partials);

// Adds to `sums` those of older draws over the same rows; members go in front. Without per-draw scores. The second goes
// by (chain, kind).
void AddOlder(const PartialPrediction& older, PartialPrediction* sums);
void AddOlder(std::vector<PartialPrediction> older, std::vector<PartialPrediction>* sums);

}  // namespace chainfleet
