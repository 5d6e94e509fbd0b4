// Sums over draws as scores are made of them, whatever kind of target the job learns.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// Of labels: the sums of wp, wh and the votes. Of numbers: of wm, wm^2 and wv; without the latter two there is no score
// but the mean.
struct ScoreSums {
  int64_t num_draws = 0;  // steps
  double w = 0;
  std::vector<double> first, second, third;

  // num_draws is left alone: kinds of one step are not steps. Either may have no sums yet.
  void Add(const ScoreSums& other);
};

ScoreSums SumsOf(const PartialPrediction& partial);

// The scores of the average over draws whose weights sum to more than 0. `classes` 0: of numbers.
PredictiveScores ScoresOf(const ScoreSums& sums, int64_t classes);

}  // namespace chainfleet
