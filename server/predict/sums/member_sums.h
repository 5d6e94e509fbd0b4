// Sums and single draws of one block of rows: members in order, and sums of several waves of draws added.
#pragma once

#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

std::vector<const PartialPrediction*> PointersTo(const std::vector<PartialPrediction>& partials);

// Returns the partials with draws, in chain order, then kind order.
std::vector<const PartialPrediction*> InOrder(std::vector<const PartialPrediction*> partials);

// The members of `partials`, in chain order, then kind order, draws in order; partials without members or draws are
// left out. OrderedMembers points into `partials`.
std::vector<Members> MembersOf(const std::vector<const PartialPrediction*>& partials);
std::vector<const Members*> OrderedMembers(const std::vector<const PartialPrediction*>& partials);

// Weighted sum of one value per single draw of `partial`, [S].
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

// Adds the sums of older draws over the same rows to `sums`; older members go in front. Per-draw scores are not added.
// The second overload matches by (chain, kind).
void AddOlder(const PartialPrediction& older, PartialPrediction* sums);
void AddOlder(std::vector<PartialPrediction> older, std::vector<PartialPrediction>* sums);

}  // namespace chainfleet
