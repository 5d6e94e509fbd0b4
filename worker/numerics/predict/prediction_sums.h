// Adds what draws say of examples to the sums of a PartialPrediction.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"
#include "worker/numerics/likelihoods/likelihood.h"

namespace chainfleet {

// The sums of one chain and kind. Distinct rows may be added by distinct threads; a row's draws come newest (last)
// first. The sum of draws is that of their runs of 1, 2, 4, ... from the newest on, the last as long as is left, and
// the sum of a run is made in the same way: so it is what a call over that run alone gives (Predictor::Predict says
// why).
class PredictionSums {
 public:
  // Sizes the arrays of `sums`, which has its number of rows and classes, for draws of these weights. `scores`: hold
  // the draws against the examples' targets; `members`: keep what each says. All outlive it.
  PredictionSums(const Likelihood* likelihood, const std::vector<double>& weights, bool scores, bool members,
                 PartialPrediction* sums);

  // Floats, on 64 bytes, that Add needs from each thread.
  int64_t scratch_size() const { return scratch_size_; }

  // Rows `row` on, under draw `s`. Float32 targets as stored, not standardised.
  void Add(const LaneExamples& examples, int64_t row, int64_t s, float* scratch);

  // After the rows [row, row + count) of draw `s`.
  void EndDraw(int64_t row, int64_t count, int64_t s);

  // Once all are added.
  void Finish();

 private:
  // A draw's place among runs inside runs: the level of the sum that it is added to (0: that of all draws), and how
  // many runs it is the oldest of, whose sums then go to the level above, one after the other.
  struct Place {
    int level = 0, ends = 0;
  };
  void Nest(int64_t newest, int64_t count, int level);
  const Place& PlaceOf(int64_t s) const { return places_[static_cast<size_t>(sums_->num_draws - 1 - s)]; }
  PartialPrediction* Level(int level) { return level == 0 ? sums_ : &runs_[static_cast<size_t>(level - 1)]; }
  void SumWeights();
  void SizeMembers(int64_t draws);
  void AddClasses(const LaneExamples& examples, int64_t row, int64_t s, double w, float* scratch);
  // Members' probabilities of one (draw, row), which is the `at`-th.
  void KeepImage(const float* p, int64_t at);
  void AddNumbers(const LaneExamples& examples, int64_t row, int64_t s, double w);

  const Likelihood* const likelihood_;
  const std::vector<double>& weights_;
  const bool scores_;
  PartialPrediction* const sums_;
  const int64_t scratch_size_;
  std::vector<Place> places_;            // by draw, the newest first
  std::vector<PartialPrediction> runs_;  // the arrays over rows, of the runs that are being added, by level from 1
  std::vector<double> log_likelihood_;   // [S, n]
  std::vector<uint8_t> hit_;             // [S, n]
};

}  // namespace chainfleet
