// Adds what draws say of examples to the sums of a PartialPrediction.
#pragma once

#include <cstdint>
#include <vector>

#include "core/domain/prediction.h"
#include "worker/numerics/likelihoods/likelihood.h"

namespace chainfleet {

// Of one chain and kind. Distinct rows may be added by distinct threads; a row's draws come in order.
class PredictionSums {
 public:
  // Sizes the arrays of `sums`, which has its number of draws, rows and classes. `scores`: hold the draws against the
  // examples' targets. All outlive it.
  PredictionSums(const Likelihood* likelihood, bool scores, PartialPrediction* sums);

  // Floats, on 64 bytes, that Add needs from each thread.
  int64_t scratch_size() const { return scratch_size_; }

  // Rows `row` on, under draw `s` of weight `w`.
  void Add(const LaneExamples& examples, int64_t row, int64_t s, double w, float* scratch);

  // Once all are added.
  void Finish();

 private:
  void AddClasses(const LaneExamples& examples, int64_t row, int64_t s, double w, float* scratch);
  void AddNumbers(const LaneExamples& examples, int64_t row, int64_t s, double w);

  const Likelihood* const likelihood_;
  const bool scores_;
  PartialPrediction* const sums_;
  const int64_t scratch_size_;
  std::vector<double> log_likelihood_;  // [S, n]
  std::vector<uint8_t> hit_;            // [S, n]
};

}  // namespace chainfleet
