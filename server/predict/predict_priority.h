// How urgent a prediction is.
#pragma once

namespace chainfleet {

// Lower is served first: in its batch's queue, and of all models' shards where they wait for workers.
enum class PredictPriority { kHigh = 0, kNormal = 1, kLow = 2 };
inline constexpr int kPredictPriorities = 3;

}  // namespace chainfleet
