// Times the steps of a batch: the median bounds hung steps, people read the rate.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet {

// The median covers the last 31 steps. The rate covers 31 steps, or 3 s if these take less: short steps alternate with
// those of other batches. Not thread-safe.
class StepTimer {
 public:
  // Adds a step that ran over [began, ended], monotonic.
  void Add(absl::Duration began, absl::Duration ended) {
    took_[count_ % took_.size()] = ended - began;
    ++count_;
    newest_ = ended;
    if (num_marks_ == 0 || ended - marks_[(num_marks_ - 1) % kWindow].ended >= kMarkEvery) {
      marks_[num_marks_++ % kWindow] = {count_, ended};
    }
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

  // Includes waiting between steps. Zero before the second step.
  double StepsPerSecond() const {
    if (count_ < 2) return 0;
    const Mark& first = marks_[num_marks_ < kWindow ? 0 : num_marks_ % kWindow];
    return static_cast<double>(count_ - first.count) / std::max(absl::ToDoubleSeconds(newest_ - first.ended), 1e-9);
  }

 private:
  static constexpr size_t kWindow = 31;
  static constexpr absl::Duration kMarkEvery = absl::Milliseconds(100);
  struct Mark {
    uint64_t count = 0;  // steps up to this one
    absl::Duration ended;
  };
  size_t size() const { return std::min<uint64_t>(count_, kWindow); }

  std::array<absl::Duration, kWindow> took_{};
  std::array<Mark, kWindow> marks_{};  // starts of the rate's window, one step each
  uint64_t num_marks_ = 0, count_ = 0;
  absl::Duration newest_;
};

}  // namespace chainfleet
