// Kernels that blur an image, as lists of weighted offsets. float32, one thread, no torch.
#pragma once

#include <cstdint>
#include <vector>

namespace chainfleet {

struct BlurTap {
  int64_t down = 0, right = 0;
  float weight = 0;
};

// Weights are positive and sum to 1; with (down, right) there is (-down, -right) with the same weight.
using BlurKernel = std::vector<BlurTap>;

// A disc of `radius` pixels: the share of each pixel that it covers, counted on a grid of 8 by 8 points a pixel.
BlurKernel DiscKernel(double radius);
// exp(-(down^2 + right^2) / (2 sigma^2)), cut at 3 sigma.
BlurKernel GaussianKernel(double sigma);
// A segment of `length` pixels around the origin, `angle` radians from the x axis: points on it, four a pixel, each
// shared among the four pixels around it as bilinear interpolation does.
BlurKernel LineKernel(double length, double angle);

// plane[height][width] becomes the weighted mean of its pixels at the kernel's offsets. Beyond its edges it goes on
// mirrored (b a | a b c ... y z | z y), so a kernel that is its own mirror image leaves the mean as it is.
void Blur(const BlurKernel& kernel, int64_t height, int64_t width, float* plane);

}  // namespace chainfleet
