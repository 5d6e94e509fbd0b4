// Adds the outputs of draws for examples to the sums of a PartialPrediction.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"
#include "worker/numerics/likelihoods/likelihood.h"

namespace chainfleet {

// The sums of one chain and kind. Distinct threads may add distinct rows; the draws of a row come newest (last) first.
// Draws are added in runs of 1, 2, 4, ... from the newest on, the last run as long as is left, and the sum of a run is
// made in the same way. It therefore equals the result of a call over that run alone (see Predictor::Predict).
class PredictionSums {
 public:
  // Sizes the arrays of `sums`, which has its number of rows and its targets, for draws with `weights`. `scores`:
  // compare the draws with the examples' targets. `members`: keep the outputs of each draw. The arguments outlive this
  // object.
  PredictionSums(const Likelihood* likelihood, const std::vector<double>& weights, bool scores, bool members,
                 PartialPrediction* sums);

  // Floats, aligned to 64 bytes, that Add needs for each thread.
  int64_t scratch_size() const { return scratch_size_; }

  // Adds the rows from `row` on, under draw `s`. Float32 targets are as stored, not standardised.
  void Add(const LaneExamples& examples, int64_t row, int64_t s, float* scratch);

  // Called after the rows [row, row + count) of draw `s`.
  void EndDraw(int64_t row, int64_t count, int64_t s);

  // Called after all rows and draws were added.
  void Finish();

 private:
  // A draw's place among nested runs: the level of the sum to which it is added (0: the sum of all draws), and the
  // number of runs of which it is the oldest draw. The sums of these runs are then added to the next level, one after
  // the other.
  struct Place {
    int level = 0, ends = 0;
  };
  void Nest(int64_t newest, int64_t count, int level);
  const Place& PlaceOf(int64_t s) const { return places_[static_cast<size_t>(sums_->num_draws - 1 - s)]; }
  PartialPrediction* Level(int level) { return level == 0 ? sums_ : &runs_[static_cast<size_t>(level - 1)]; }
  void SumWeights();
  void SizeMembers(int64_t draws);
  void AddClasses(const LaneExamples& examples, int64_t row, int64_t s, double w, float* scratch);
  // Keeps a member's probabilities of one (draw, row), the `at`-th.
  void KeepImage(const float* p, int64_t at);
  void AddNumbers(const LaneExamples& examples, int64_t row, int64_t s, double w);

  const Likelihood* const likelihood_;
  const std::vector<double>& weights_;
  const bool scores_;
  PartialPrediction* const sums_;
  const int64_t scratch_size_;
  std::vector<Place> places_;            // by draw, the newest first
  std::vector<PartialPrediction> runs_;  // row arrays of the unfinished runs, by level from 1
  std::vector<double> log_likelihood_;   // [S, n]
  std::vector<uint8_t> hit_;             // [S, n]
};

}  // namespace chainfleet
