// Cuts the draws of an anytime call into waves that fit its deadline.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet {

// A wave takes the next draws of every chain, counted back from the newest: 1, then 2, 4, 8, .... A worker thus adds a
// whole wave as one run (worker/numerics/predict/predictor.h), and the sums of the waves have the bits of one call over
// all their draws. The last wave may be shorter. Plain data: the caller measures.
class WavePace {
 public:
  // `longest`: number of draws of the longest chain.
  explicit WavePace(int64_t longest) : longest_(longest) {}

  // Draws of each chain in the next wave: as many of its 2^k as fit into `left` at 25 % more time per draw than the
  // last wave took. The first wave is taken whatever is left. 0: no further wave fits, or the last one was shortened.
  int64_t Next(absl::Duration left) const;

  // Records that a wave of `count` draws of each chain, as returned by Next, took `time`.
  void Took(int64_t count, absl::Duration time);

  // Draws of each chain in all waves so far.
  int64_t done() const { return done_; }

 private:
  const int64_t longest_;
  int64_t done_ = 0;
  absl::Duration per_draw_;
};

}  // namespace chainfleet
