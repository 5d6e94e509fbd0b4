// A prediction that may pause between two draws, so that chains and other predictions go on meanwhile.
#pragma once

#include <functional>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"

namespace chainfleet {

// Whether to stop soon; asked after each draw of each block of rows, by several threads at once.
using Pause = std::function<bool()>;

// Not thread-safe. Where it pauses changes no bit of the result.
class PredictionRun {
 public:
  virtual ~PredictionRun() = default;

  // Goes on until `pause` says true, one draw for each thread at least; a GPU goes on to the end. True once complete.
  virtual absl::StatusOr<bool> Advance(const Pause& pause) = 0;

  // The sums of each stack, in their order; once, after Advance has said true.
  virtual std::vector<PartialPrediction> Take() = 0;
};

}  // namespace chainfleet
