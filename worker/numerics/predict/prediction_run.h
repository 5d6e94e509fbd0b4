// A prediction that can pause between two draws, so that chains and other predictions can run meanwhile.
#pragma once

#include <functional>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"

namespace chainfleet {

// True if the run should stop soon. Called after each draw of each block of rows, by several threads at once.
using Pause = std::function<bool()>;

// Not thread-safe. Pauses change no bit of the result.
class PredictionRun {
 public:
  virtual ~PredictionRun() = default;

  // Runs until `pause` returns true, at least one draw for each thread; a GPU runs to the end. True once complete.
  virtual absl::StatusOr<bool> Advance(const Pause& pause) = 0;

  // The sums of each stack, in order. Called once, after Advance has returned true.
  virtual std::vector<PartialPrediction> Take() = 0;
};

}  // namespace chainfleet
