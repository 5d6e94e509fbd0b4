// Augmentation in ATen operations, on the device of the images.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/numerics/kernels/augment.h"

namespace chainfleet {

// Images [m, channels, height, width], the i-th changed by `changes[i]`. The bits are those of ChangeImage.
at::Tensor AugmentedImages(const at::Tensor& images, const std::vector<ImageChange>& changes);

}  // namespace chainfleet
