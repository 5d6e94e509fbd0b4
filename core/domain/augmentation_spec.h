// Random changes of the images of a mini-batch, made anew at each step of a chain; nothing but training sees them.
#pragma once

#include <cstdint>

#include "core/domain/fields.h"

namespace chainfleet {

// Of an image whose values are standardised already: with `crop_padding` p a window of its own size, moved by a uniform
// number of pixels from -p to p each way and zero where it leaves the image; then, with `flip`, mirrored left to right
// with probability 1/2.
struct AugmentationSpec {
  int64_t crop_padding = 0;
  bool flip = false;

  bool any() const { return crop_padding > 0 || flip; }
  static void Fields(auto& self, auto&& visit) {
    visit("crop_padding", self.crop_padding, Between(0, 64));
    visit("flip", self.flip);
  }
  bool operator==(const AugmentationSpec&) const = default;
};

}  // namespace chainfleet
