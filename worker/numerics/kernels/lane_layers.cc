#include "worker/numerics/kernels/lane_layers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "worker/numerics/kernels/lanes.h"

namespace chainfleet {
namespace {

// The larger number; a NaN wins over any number.
float Larger(float a, float b) { return a > b || a != a ? a : b; }

// sum[16] over `size` pixels of value(x). Partial sums of 32 pixels keep the rounding error small.
template <typename Value>
void SumPixels(int64_t size, const float* x, const Value& value, float* sum) {
  constexpr int64_t kRun = 32;
  std::fill_n(sum, kLanes, 0.0f);
  for (int64_t first = 0; first < size; first += kRun) {
    float run[kLanes] = {};
    for (int64_t p = first; p < std::min(first + kRun, size); ++p) {
      for (int64_t l = 0; l < kLanes; ++l) run[l] += value(x[p * kLanes + l]);
    }
    for (int64_t l = 0; l < kLanes; ++l) sum[l] += run[l];
  }
}

template <typename Function>
void ForEachValue(int64_t count, const Function& function, float* x) {
  for (int64_t i = 0; i < count * kLanes; ++i) x[i] = function(x[i]);
}

// For each window: start(y), then add(x, y) for each of its pixels, then finish(y). y[16] is one output.
template <typename Start, typename Add, typename Finish>
void ForEachWindow(const LanePool& pool, const float* x, float* y, const Start& start, const Add& add,
                   const Finish& finish) {
  for (int64_t channel = 0; channel < pool.channels; ++channel, x += pool.height * pool.width * kLanes) {
    for (int64_t row = 0; row < pool.out_height(); ++row) {
      const int64_t top = row * pool.stride - pool.padding;
      for (int64_t column = 0; column < pool.out_width(); ++column, y += kLanes) {
        const int64_t left = column * pool.stride - pool.padding;
        start(y);
        for (int64_t i = std::max<int64_t>(top, 0); i < std::min(top + pool.size, pool.height); ++i) {
          for (int64_t j = std::max<int64_t>(left, 0); j < std::min(left + pool.size, pool.width); ++j) {
            add(x + (i * pool.width + j) * kLanes, y);
          }
        }
        finish(y);
      }
    }
  }
}

}  // namespace

void LaneRelu(int64_t count, float* x) {
  ForEachValue(
      count, [](float v) { return v < 0 ? 0 : v; }, x);
}

void LaneGelu(int64_t count, float* x) {
  constexpr auto kRootHalf = static_cast<float>(1 / std::numbers::sqrt2);
  ForEachValue(
      count, [](float v) { return 0.5f * v * (1 + std::erf(v * kRootHalf)); }, x);
}

void LaneSilu(int64_t count, float* x) {
  ForEachValue(
      count, [](float v) { return v / (1 + std::exp(-v)); }, x);
}

void LaneTanh(int64_t count, float* x) {
  ForEachValue(
      count, [](float v) { return std::tanh(v); }, x);
}

// Equal to x where exp(-x) is lost beside 1, as in ATen.
void LaneSoftplus(int64_t count, float* x) {
  ForEachValue(
      count, [](float v) { return v > 20 ? v : std::log1p(std::exp(v)); }, x);
}

void LaneLeakyRelu(int64_t count, double slope, float* x) {
  ForEachValue(
      count, [slope = static_cast<float>(slope)](float v) { return v > 0 ? v : v * slope; }, x);
}

void LaneAdd(int64_t count, const float* y, float* x) {
  for (int64_t i = 0; i < count * kLanes; ++i) x[i] += y[i];
}

void LaneBatchNorm(LanePlanes planes, const float* mean, const float* variance, double epsilon, const float* scale,
                   const float* shift, float* x) {
  for (int64_t c = 0; c < planes.channels; ++c) {
    const float factor = scale[c] / std::sqrt(variance[c] + static_cast<float>(epsilon));
    const float offset = shift[c] - mean[c] * factor;
    for (int64_t i = 0; i < planes.size * kLanes; ++i, ++x) *x = *x * factor + offset;
  }
}

void LaneFilterResponseNorm(LanePlanes planes, double epsilon, const float* scale, const float* shift,
                            const float* threshold, float* x) {
  for (int64_t c = 0; c < planes.channels; ++c, x += planes.size * kLanes) {
    float factor[kLanes];
    SumPixels(
        planes.size, x, [](float value) { return value * value; }, factor);
    for (float& f : factor) {
      f = scale[c] / std::sqrt(f / static_cast<float>(planes.size) + static_cast<float>(epsilon));
    }
    for (int64_t p = 0; p < planes.size; ++p) {
      for (int64_t l = 0; l < kLanes; ++l) x[p * kLanes + l] = x[p * kLanes + l] * factor[l] + shift[c];
    }
    if (threshold == nullptr) continue;
    for (int64_t i = 0; i < planes.size * kLanes; ++i) x[i] = Larger(x[i], threshold[c]);
  }
}

void LaneGroupNorm(LanePlanes planes, int64_t groups, double epsilon, const float* scale, const float* shift,
                   float* x) {
  const int64_t channels = planes.channels / groups, values = channels * planes.size;
  for (int64_t g = 0; g < groups; ++g, scale += channels, shift += channels) {
    float mean[kLanes], factor[kLanes];
    SumPixels(
        values, x, [](float value) { return value; }, mean);
    for (float& m : mean) m /= static_cast<float>(values);
    for (int64_t i = 0; i < values * kLanes; ++i) x[i] -= mean[i % kLanes];
    SumPixels(
        values, x, [](float value) { return value * value; }, factor);
    for (float& f : factor) f = 1 / std::sqrt(f / static_cast<float>(values) + static_cast<float>(epsilon));
    for (int64_t i = 0; i < values * kLanes; ++i, ++x) {
      const int64_t channel = i / (planes.size * kLanes);
      *x = *x * factor[i % kLanes] * scale[channel] + shift[channel];
    }
  }
}

void LaneMaxPool(const LanePool& pool, const float* x, float* y) {
  ForEachWindow(
      pool, x, y, [](float* out) { std::fill_n(out, kLanes, -INFINITY); },
      [](const float* in, float* out) {
        for (int64_t l = 0; l < kLanes; ++l) out[l] = Larger(in[l], out[l]);
      },
      [](float*) {});
}

void LaneAvgPool(const LanePool& pool, const float* x, float* y) {
  const auto area = static_cast<float>(pool.size * pool.size);
  ForEachWindow(
      pool, x, y, [](float* out) { std::fill_n(out, kLanes, 0.0f); },
      [](const float* in, float* out) {
        for (int64_t l = 0; l < kLanes; ++l) out[l] += in[l];
      },
      [area](float* out) {
        for (int64_t l = 0; l < kLanes; ++l) out[l] /= area;
      });
}

void LaneMean(LanePlanes planes, const float* x, float* y) {
  for (int64_t c = 0; c < planes.channels; ++c, x += planes.size * kLanes, y += kLanes) {
    SumPixels(
        planes.size, x, [](float value) { return value; }, y);
    for (int64_t l = 0; l < kLanes; ++l) y[l] /= static_cast<float>(planes.size);
  }
}

void LanePad(const LanePool& image, const float* x, float* y) {
  const int64_t pad = image.padding, width = image.width + 2 * pad;
  for (int64_t c = 0; c < image.channels; ++c) {
    std::fill_n(y, pad * width * kLanes, 0.0f);
    y += pad * width * kLanes;
    for (int64_t row = 0; row < image.height; ++row, x += image.width * kLanes, y += width * kLanes) {
      std::fill_n(y, pad * kLanes, 0.0f);
      std::copy_n(x, image.width * kLanes, y + pad * kLanes);
      std::fill_n(y + (pad + image.width) * kLanes, pad * kLanes, 0.0f);
    }
    std::fill_n(y, pad * width * kLanes, 0.0f);
    y += pad * width * kLanes;
  }
}

}  // namespace chainfleet
