#include "server/predict/serving/wave_pace.h"

#include <algorithm>
#include <bit>

namespace chainfleet {

int64_t WavePace::Next(absl::Duration left) const {
  const int64_t run = done_ + 1;  // after whole runs, whose lengths sum to 2^k - 1
  if (done_ >= longest_ || !std::has_single_bit(static_cast<uint64_t>(run))) return 0;
  const int64_t whole = std::min(run, longest_ - done_);
  if (done_ == 0 || per_draw_ <= absl::ZeroDuration()) return whole;
  const double fit = absl::FDivDuration(left, per_draw_ * 1.25);
  return fit >= static_cast<double>(whole) ? whole : std::max<int64_t>(static_cast<int64_t>(fit), 0);
}

void WavePace::Took(int64_t count, absl::Duration time) {
  done_ += count;
  per_draw_ = time / count;
}

}  // namespace chainfleet
