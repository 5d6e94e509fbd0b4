// Corrupted images (Hendrycks and Dietterich, ICLR 2019; code and levels are our own), on the x / 255 scale in [0, 1].
// Severities are s = 1..5. Lengths scale with d, the pixels of the image's shorter side:
//
//   gaussian_noise  x + sigma n, n standard normal by value; sigma = .08, .12, .18, .26, .38
//   shot_noise      Poisson(c x) / c by value; c = 60, 25, 12, 5, 3
//   impulse_noise   by value 0 or 1, each with probability p / 2; p = .03, .06, .09, .17, .27
//   speckle_noise   x + sigma x n; sigma = .15, .2, .35, .45, .6
//   defocus_blur    by a disc of radius 1/2 + s d / 64
//   gaussian_blur   sigma = 3/10 + s d / 128
//   motion_blur     along a line of length 1 + s d / 16, its direction uniform
//   brightness      x + s / 10
//   contrast        m + k (x - m), m the channel's mean; k = .4, .3, .2, .1, .05
//   fog             x + c f (1 - x), f in [0, 1] smooth noise over the image (light scattered in by air: Koschmieder
//                   1924); c = .3, .45, .6, .75, .9
//   pixelate        area means on ceil(q height) by ceil(q width) pixels, each drawn large; q = .8, .6, .4, .3, .2
//   rotate          by 6 s degrees, either way, bilinear; beyond its edges the image goes on with its last pixels
//
// and clipped to [0, 1]. float32, one thread, no torch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/domain/corruption.h"

namespace chainfleet {

// One corruption of images of one shape. Immutable, thread-safe.
class Corrupter {
 public:
  // INVALID_ARGUMENT with violations: see core/domain/corruption.h.
  static absl::StatusOr<Corrupter> Create(const Corruption& corruption, const std::vector<int64_t>& input_shape);

  // Changes `image` [channels, height, width], row `row` of its data set, in place. A pure function of the corruption,
  // `row` and the image: the random numbers are those of key Fold(seed, row), stream kAugmentation, step
  // CorruptionKind, and are the same at each severity.
  void Change(int64_t row, float* image) const;

 private:
  struct Plane {
    int64_t channels, height, width;
    int64_t size() const { return height * width; }
    int64_t values() const { return channels * size(); }
  };

  Corrupter(CorruptionKind kind, int32_t severity, uint64_t seed, Plane shape)
      : kind_(kind), severity_(severity), seed_(seed), shape_(shape) {}

  CorruptionKind kind_;
  int32_t severity_;
  uint64_t seed_;
  Plane shape_;
};

}  // namespace chainfleet
