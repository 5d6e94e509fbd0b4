// The urgency of a prediction.
#pragma once

#include <initializer_list>

namespace chainfleet {

// Lower values are served first, in the batcher's queues and among the shards of all models that wait for workers.
enum class PredictPriority { kHigh = 0, kNormal = 1, kLow = 2 };
inline constexpr int kPredictPriorities = 3;
inline std::initializer_list<const char*> EnumNames(PredictPriority) {
  static constexpr std::initializer_list<const char*> kNames = {"high", "normal", "low"};
  return kNames;
}

}  // namespace chainfleet
