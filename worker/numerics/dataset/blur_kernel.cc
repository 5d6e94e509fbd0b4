#include "worker/numerics/dataset/blur_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace chainfleet {
namespace {

// Taps at -radius .. radius in both directions, with weights `of(down, right)` divided by their sum; zeros are left
// out.
template <typename Weight>
BlurKernel Normalised(int64_t radius, const Weight& of) {
  double sum = 0;
  for (int64_t down = -radius; down <= radius; ++down) {
    for (int64_t right = -radius; right <= radius; ++right) sum += of(down, right);
  }
  BlurKernel kernel;
  for (int64_t down = -radius; down <= radius; ++down) {
    for (int64_t right = -radius; right <= radius; ++right) {
      const auto weight = static_cast<float>(of(down, right) / sum);
      if (weight > 0) kernel.push_back({down, right, weight});
    }
  }
  return kernel;
}

int64_t Mirrored(int64_t i, int64_t size) {
  const int64_t period = 2 * size, at = ((i % period) + period) % period;
  return at < size ? at : period - 1 - at;
}

}  // namespace

BlurKernel DiscKernel(double radius) {
  constexpr int kPoints = 8;
  return Normalised(static_cast<int64_t>(std::ceil(radius)), [radius](int64_t down, int64_t right) {
    int inside = 0;
    for (int i = 0; i < kPoints; ++i) {
      for (int j = 0; j < kPoints; ++j) {
        const double y = static_cast<double>(down) + (i + 0.5) / kPoints - 0.5;
        const double x = static_cast<double>(right) + (j + 0.5) / kPoints - 0.5;
        inside += y * y + x * x <= radius * radius;
      }
    }
    return static_cast<double>(inside);
  });
}

BlurKernel GaussianKernel(double sigma) {
  return Normalised(static_cast<int64_t>(std::ceil(3 * sigma)), [sigma](int64_t down, int64_t right) {
    return std::exp(-static_cast<double>(down * down + right * right) / (2 * sigma * sigma));
  });
}

BlurKernel LineKernel(double length, double angle) {
  const auto radius = static_cast<int64_t>(std::ceil(length / 2)) + 1;
  const int64_t side = 2 * radius + 1, points = static_cast<int64_t>(std::ceil(4 * length));
  std::vector<double> weights(side * side);
  for (int64_t i = 0; i < points; ++i) {
    const double along = ((static_cast<double>(i) + 0.5) / static_cast<double>(points) - 0.5) * length;
    const double y = along * std::sin(angle), x = along * std::cos(angle);
    const double top = std::floor(y), left = std::floor(x), below = y - top, beyond = x - left;
    double* corner = &weights[(static_cast<int64_t>(top) + radius) * side + static_cast<int64_t>(left) + radius];
    corner[0] += (1 - below) * (1 - beyond);
    corner[1] += (1 - below) * beyond;
    corner[side] += below * (1 - beyond);
    corner[side + 1] += below * beyond;
  }
  return Normalised(radius,
                    [&](int64_t down, int64_t right) { return weights[(down + radius) * side + right + radius]; });
}

void Blur(const BlurKernel& kernel, int64_t height, int64_t width, float* plane) {
  int64_t radius = 0;
  for (const BlurTap& tap : kernel) radius = std::max({radius, std::abs(tap.down), std::abs(tap.right)});
  const int64_t stride = width + 2 * radius;
  std::vector<float> padded((height + 2 * radius) * stride);
  for (int64_t y = 0; y < height + 2 * radius; ++y) {
    const float* row = plane + Mirrored(y - radius, height) * width;
    for (int64_t x = 0; x < stride; ++x) padded[y * stride + x] = row[Mirrored(x - radius, width)];
  }
  std::fill_n(plane, height * width, 0.0f);
  for (int64_t y = 0; y < height; ++y) {
    for (const BlurTap& tap : kernel) {
      const float* from = &padded[(y + radius + tap.down) * stride + radius + tap.right];
      for (int64_t x = 0; x < width; ++x) plane[y * width + x] += tap.weight * from[x];
    }
  }
}

}  // namespace chainfleet
