// Scores of the average as a function of the number of draws averaged.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/domain/evaluation.h"
#include "core/domain/prediction.h"
#include "core/scores/calibration.h"
#include "server/predict/serving/fan_out.h"

namespace chainfleet {

// At most `points` >= 1 numbers of steps from 1 to `longest` >= 1, log-spaced and rounded, strictly rising, including
// both ends (with one point only `longest`).
std::vector<int64_t> CurveSteps(int64_t longest, int points);

// For several s: scores of the average over the first s steps of every chain, all kinds included. A chain with fewer
// steps contributes all of them. Memory: sums of scores for each block that arrives out of order, no [rows] arrays. Not
// thread-safe.
class ScoreCurve {
 public:
  // `labels` [n] outlive this object. `chain_steps`: number of steps of each chain.
  ScoreCurve(std::vector<int64_t> chain_steps, int points, int64_t num_classes, std::span<const int32_t> labels,
             int ece_bins);

  // Takes each row once, blocks in any order; `partials` as FanOut delivers them, with members.
  void Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials);

  // Called after all rows were added. Points have rising num_draws.
  std::vector<CurvePoint> Points() const;

 private:
  // Sums over rows, for one point.
  struct Sums {
    double hits = 0, nll = 0, rows = 0;
    std::vector<ReliabilityBin> bins;  // equal width

    void Add(const Sums& more);
  };
  Sums Score(const RowBlock& rows, std::span<const double> mean_probability) const;

  const std::vector<int64_t> chain_steps_;
  const std::vector<int64_t> steps_;  // s of each point
  const int64_t num_classes_;
  const std::span<const int32_t> labels_;
  const int ece_bins_;
  std::vector<Sums> sums_;                      // by point, over the rows below next_row_
  std::map<int64_t, std::vector<Sums>> early_;  // by first row; added in row order, so that the bits are the same
  int64_t next_row_ = 0;
};

}  // namespace chainfleet
