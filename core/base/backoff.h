// The wait before a retry: doubling, bounded, with jitter from a key.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "core/base/limits.h"
#include "core/base/rng_key.h"

namespace chainfleet {

// The wait doubles from limits::kRetryInitial up to limits::kRetryMax. Each wait is drawn from its upper half, so that
// the workers of a fleet do not retry in step. Not thread-safe.
class Backoff {
 public:
  explicit Backoff(RngKey key) : key_(key) {}

  absl::Duration Next() {
    const PhiloxBlock block = RandomBlock(key_, RngStream::kProbe, draws_++, 0);
    const absl::Duration wait = limits::kRetryInitial * (int64_t{1} << std::min(failures_++, 16));
    return std::min(wait, limits::kRetryMax) * (0.5 + 0.5 * UniformDouble(block.word[0], block.word[1]));
  }

  // Call after a success: the next wait is the initial one again.
  void Reset() { failures_ = 0; }

  int failures() const { return failures_; }

 private:
  RngKey key_;
  uint64_t draws_ = 0;
  int failures_ = 0;
};

}  // namespace chainfleet
