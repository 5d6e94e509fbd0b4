// How long the steps of a batch take: the median for the bound on hung steps, the rate for people.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet {

// Over the last 31 steps. Not thread-safe.
class StepTimer {
 public:
  // A step ran over [began, ended] of the monotonic clock.
  void Add(absl::Duration began, absl::Duration ended) {
    took_[count_ % took_.size()] = ended - began;
    ended_[count_ % ended_.size()] = ended;
    ++count_;
  }

  // Zero before the first step.
  absl::Duration Median() const {
    std::array<absl::Duration, kWindow> sorted = took_;
    const auto end = sorted.begin() + static_cast<int64_t>(size());
    const auto middle = sorted.begin() + static_cast<int64_t>(size() / 2);
    if (end == sorted.begin()) return absl::ZeroDuration();
    std::nth_element(sorted.begin(), middle, end);
    return *middle;
  }

  // Waiting between steps counts. Zero before the second step.
  double StepsPerSecond() const {
    if (size() < 2) return 0;
    const absl::Duration first = ended_[count_ < kWindow ? 0 : count_ % kWindow];
    const absl::Duration last = ended_[(count_ - 1) % kWindow];
    return static_cast<double>(size() - 1) / std::max(absl::ToDoubleSeconds(last - first), 1e-9);
  }

 private:
  static constexpr size_t kWindow = 31;
  size_t size() const { return std::min<uint64_t>(count_, kWindow); }

  std::array<absl::Duration, kWindow> took_{};
  std::array<absl::Duration, kWindow> ended_{};
  uint64_t count_ = 0;
};

}  // namespace chainfleet
