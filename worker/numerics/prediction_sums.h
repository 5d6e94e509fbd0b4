// Adds what draws say of examples to the sums of a PartialPrediction.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"
#include "worker/numerics/likelihoods/likelihood.h"

namespace chainfleet {

// Of one chain and kind. Distinct rows may be added by distinct threads; a row's draws come newest (last) first, and
// are added in runs of 1, 2, 4, ... (Predictor::Predict says why).
class PredictionSums {
 public:
  // Sizes the arrays of `sums`, which has its number of rows and classes, for draws of these weights. `scores`: hold
  // the draws against the examples' targets; `members`: keep what each says. All outlive it.
  PredictionSums(const Likelihood* likelihood, const std::vector<double>& weights, bool scores, bool members,
                 PartialPrediction* sums);

  // Floats, on 64 bytes, that Add needs from each thread.
  int64_t scratch_size() const { return scratch_size_; }

  // Rows `row` on, under draw `s`.
  void Add(const LaneExamples& examples, int64_t row, int64_t s, float* scratch);

  // After the rows [row, row + count) of draw `s`.
  void EndDraw(int64_t row, int64_t count, int64_t s);

  // Once all are added.
  void Finish();

 private:
  // Whether draw `s` is the oldest of its run.
  bool EndsRun(int64_t s) const;
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
  PartialPrediction run_;               // the arrays over rows, of the run that is being added
  std::vector<double> log_likelihood_;  // [S, n]
  std::vector<uint8_t> hit_;            // [S, n]
};

}  // namespace chainfleet
