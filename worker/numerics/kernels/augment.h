// Augmentation of one image of a minibatch (core/domain/augmentation_spec.h).
#pragma once

#include <cstdint>

#include "core/base/rng_key.h"
#include "core/domain/augmentation_spec.h"

namespace chainfleet {

// out(y, x) = in(y + down, x' + right), where x' = x or, mirrored, width - 1 - x; zero outside the image. The crop
// comes first, as in torchvision's scripts; the other order has the same distribution, because that of the crop is
// symmetric.
struct ImageChange {
  int32_t down = 0, right = 0;
  bool mirror = false;
};

// The change of the image at `position` of the minibatch at a chain's step; a pure function of its arguments. `down`
// and `right` are uniform on -crop_padding .. crop_padding (up to 2^-32), from words 0 and 1 of block `position` of
// stream kAugmentation. With `flip`, the image is mirrored if the highest bit of word 2 is set.
ImageChange DrawImageChange(const AugmentationSpec& augmentation, RngKey key, uint64_t step, uint32_t position);

// out[channels][height][width] from `in`, which it must not overlap; float32, one thread.
void ChangeImage(int64_t channels, int64_t height, int64_t width, const ImageChange& change, const float* in,
                 float* out);

}  // namespace chainfleet
