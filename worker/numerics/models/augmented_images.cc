#include "worker/numerics/models/augmented_images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>

#include "core/base/check.h"
#include "worker/numerics/arena/tensor_view.h"

namespace chainfleet {

at::Tensor AugmentedImages(const at::Tensor& images, const std::vector<ImageChange>& changes) {
  const int64_t count = images.size(0), channels = images.size(1), height = images.size(2), width = images.size(3);
  CHAINFLEET_CHECK(static_cast<int64_t>(changes.size()) == count);
  std::vector<int64_t> numbers;
  for (const ImageChange& change : changes) numbers.insert(numbers.end(), {change.down, change.right, change.mirror});
  const at::Tensor columns = Uploaded(numbers.data(), {count, 3}, images.device());
  const auto options = at::dtype(at::kLong).device(images.device());
  const at::Tensor along = at::arange(width, options);
  // [m, height] and [m, width]: source coordinates of each pixel.
  const at::Tensor y = at::arange(height, options) + columns.narrow(1, 0, 1);
  const at::Tensor x =
      at::where(columns.narrow(1, 2, 1).to(at::kBool), width - 1 - along, along) + columns.narrow(1, 1, 1);
  const at::Tensor outside =
      (y.lt(0) | y.ge(height)).unsqueeze(2) | (x.lt(0) | x.ge(width)).unsqueeze(1);  // [m, height, width]
  const at::Tensor source = (y.clamp(0, height - 1) * width).unsqueeze(2) + x.clamp(0, width - 1).unsqueeze(1);
  const at::Tensor index = source.view({count, 1, -1}).expand({count, channels, height * width});
  return images.flatten(2).gather(2, index).view(images.sizes()).masked_fill(outside.unsqueeze(1), 0);
}

}  // namespace chainfleet
