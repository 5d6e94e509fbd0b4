// Random changes of the images of a mini-batch, made anew at each step of a chain; nothing but training sees them.
#pragma once

#include <cstdint>

#include "core/domain/fields.h"

namespace chainfleet {

// Changes of one image, after its values were standardised. `crop_padding` p: the image is replaced by a window of the
// same size, moved by a uniform number of pixels from -p to p each way, and zero where it leaves the image. `flip`: the
// result is then mirrored left to right with probability 1/2.
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
