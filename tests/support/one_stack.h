// The predictions of one stack of draws.
#pragma once

#include <utility>

#include "worker/numerics/predict/predictor.h"

namespace chainfleet {

inline absl::StatusOr<PartialPrediction> TheOne(absl::StatusOr<std::vector<PartialPrediction>> sums) {
  if (!sums.ok()) return sums.status();
  return std::move(sums->at(0));
}

template <typename PredictorPointer, typename... Arguments>
absl::StatusOr<PartialPrediction> Predict(const PredictorPointer& predictor, const DrawStack& draws,
                                          Arguments&&... arguments) {
  return TheOne(predictor->Predict({draws}, std::forward<Arguments>(arguments)...));
}

template <typename PredictorPointer, typename... Arguments>
absl::StatusOr<PartialPrediction> PredictRows(const PredictorPointer& predictor, const DrawStack& draws,
                                              Arguments&&... arguments) {
  return TheOne(predictor->PredictRows({draws}, std::forward<Arguments>(arguments)...));
}

}  // namespace chainfleet
