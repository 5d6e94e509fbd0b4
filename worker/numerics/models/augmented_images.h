// Augmentation in ATen operations, on the device that has the images.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/numerics/kernels/augment.h"

namespace chainfleet {

// Images [m, channels, height, width], the i-th changed by `changes[i]`: bit for bit what ChangeImage makes of it.
at::Tensor AugmentedImages(const at::Tensor& images, const std::vector<ImageChange>& changes);

}  // namespace chainfleet
