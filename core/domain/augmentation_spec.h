// Random changes of the images of a mini-batch. A chain draws them anew at each step; only training applies them.
#pragma once

#include <cstdint>

#include "core/domain/fields.h"

namespace chainfleet {

// Changes one image after its values are standardised. `crop_padding` p replaces the image by a window of the same
// size, moved by a uniform number of pixels from -p to p in each direction, and fills with zeros outside the image.
// `flip` then mirrors the result left to right with probability 1/2.
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
