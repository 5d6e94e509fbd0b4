// Kernels that blur an image, as lists of weighted offsets. float32, one thread, no torch.
#pragma once

#include <cstdint>
#include <vector>

namespace chainfleet {

struct BlurTap {
  int64_t down = 0, right = 0;
  float weight = 0;
};

// Weights are positive and sum to 1. For each (down, right) there is (-down, -right) with the same weight.
using BlurKernel = std::vector<BlurTap>;

// A disc of `radius` pixels. A weight is the share of the pixel that the disc covers, counted on a grid of 8 x 8
// points.
BlurKernel DiscKernel(double radius);
// exp(-(down^2 + right^2) / (2 sigma^2)), cut at 3 sigma.
BlurKernel GaussianKernel(double sigma);
// A segment of `length` pixels around the origin, at `angle` radians from the x axis: four points a pixel, each
// distributed to the four pixels around it by bilinear interpolation.
BlurKernel LineKernel(double length, double angle);

// Replaces each pixel of plane[height][width] by the weighted mean of the pixels at the kernel's offsets. The plane is
// continued by mirroring (b a | a b c ... y z | z y), so a point-symmetric kernel keeps the mean.
void Blur(const BlurKernel& kernel, int64_t height, int64_t width, float* plane);

}  // namespace chainfleet
