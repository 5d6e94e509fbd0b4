#include "worker/numerics/kernels/augment.h"

#include <algorithm>
#include <cstdlib>

namespace chainfleet {

ImageChange DrawImageChange(const AugmentationSpec& augmentation, RngKey key, uint64_t step, uint32_t position) {
  const PhiloxBlock block = RandomBlock(key, RngStream::kAugmentation, step, position);
  const auto padding = static_cast<int32_t>(augmentation.crop_padding);
  const auto offset = [padding](uint32_t word) {
    return static_cast<int32_t>(word * static_cast<uint64_t>(2 * padding + 1) >> 32) - padding;
  };
  return {offset(block.word[0]), offset(block.word[1]), augmentation.flip && block.word[2] >> 31 == 1};
}

void ChangeImage(int64_t channels, int64_t height, int64_t width, const ImageChange& change, const float* in,
                 float* out) {
  // Pixels of a line that come from the image. As many as the shift are missing on the far side.
  const int64_t taken = std::max<int64_t>(0, width - std::abs(change.right));
  const int64_t from = std::clamp<int64_t>(change.right, 0, width);
  const int64_t to = change.mirror ? std::max<int64_t>(0, change.right) : std::max<int64_t>(0, -change.right);
  for (int64_t line = 0; line < channels * height; ++line, out += width) {
    const int64_t y = line % height + change.down;
    std::fill_n(out, width, 0.0f);
    if (y < 0 || y >= height) continue;
    const float* const first = in + (line / height * height + y) * width + from;
    if (change.mirror) {
      std::reverse_copy(first, first + taken, out + to);
    } else {
      std::copy_n(first, taken, out + to);
    }
  }
}

}  // namespace chainfleet
