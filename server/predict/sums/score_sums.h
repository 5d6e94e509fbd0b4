// The sums over draws from which scores are computed, for either kind of target.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// For labels `first`, `second` and `third` are the sums of wp, wh and the votes; for float32 targets of wm, wm^2 and
// wv. Without the latter two, only the mean can be computed.
struct ScoreSums {
  int64_t num_draws = 0;  // steps
  double w = 0;
  std::vector<double> first, second, third;

  // Adds the sums but not num_draws, because kinds of one step are not steps. Either side may be empty.
  void Add(const ScoreSums& other);
};

ScoreSums SumsOf(const PartialPrediction& partial);

// The scores of the average over draws whose weights sum to more than 0.
PredictiveScores ScoresOf(const ScoreSums& sums, const Targets& targets);

}  // namespace chainfleet
