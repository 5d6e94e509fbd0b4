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

// Of what single draws of `partial` came to, [S], by their weights.
template <typename T>
double WeightedSum(const std::vector<T>& values, const PartialPrediction& partial) {
  const bool alike = partial.draw_weights.empty() && partial.num_draws > 0;
  const double weight = alike ? partial.sum_w / static_cast<double>(partial.num_draws) : 0;
  double sum = 0;
  for (size_t s = 0; s < values.size(); ++s) {
    sum += (alike ? weight : partial.draw_weights[s]) * static_cast<double>(values[s]);
  }
  return sum;
}

// Adds to `sums` those of older draws over the same rows; members go in front. Without per-draw scores. The second goes
// by (chain, kind).
void AddOlder(const PartialPrediction& older, PartialPrediction* sums);
void AddOlder(std::vector<PartialPrediction> older, std::vector<PartialPrediction>* sums);

}  // namespace chainfleet
