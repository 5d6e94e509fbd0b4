// How urgent a prediction is.
#pragma once

#include <initializer_list>

namespace chainfleet {

// Lower is served first: in its batch's queue, and of all models' shards where they wait for workers.
enum class PredictPriority { kHigh = 0, kNormal = 1, kLow = 2 };
inline constexpr int kPredictPriorities = 3;
inline std::initializer_list<const char*> EnumNames(PredictPriority) {
  static constexpr std::initializer_list<const char*> kNames = {"high", "normal", "low"};
  return kNames;
}

}  // namespace chainfleet
