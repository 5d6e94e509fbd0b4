#include "worker/numerics/kernels/conv.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/numerics/kernels/lane_arrays.h"
#include "worker/numerics/kernels/lanes.h"

namespace chainfleet {
namespace {

using testing::AlignedFloats;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Channels around the register blocks, sizes whose last row or column is dropped, widths with and without the 5-pixel
// tiles, and the two layers of LeNet-5.
const std::vector<ConvShape> kShapes = {{1, 1, 3, 4, 4},  {1, 2, 3, 5, 6},   {2, 3, 5, 6, 9},   {3, 4, 3, 7, 8},
                                        {3, 5, 5, 9, 14}, {2, 13, 3, 6, 12}, {1, 6, 5, 32, 32}, {6, 16, 5, 14, 14}};

struct Layer {
  explicit Layer(const ConvShape& s)
      : shape(s),
        weight(s.num_weights(), 1),
        bias(s.out_channels, 2),
        x(s.input_size() * kLanes, 3),
        dy(s.output_size() * kLanes, 4),
        y(s.output_size() * kLanes),
        largest(static_cast<size_t>(s.output_size() * kLanes)),
        dweight(s.num_weights() * kLanes),
        dbias(s.out_channels * kLanes),
        dx(s.input_size() * kLanes) {}

  void Forward() { ConvReluPoolForward(shape, weight.data(), bias.data(), x.data(), y.data(), largest.data()); }
  void Backward(bool input_gradient = true) {
    AlignedFloats scratch(shape.out_channels * 4 * shape.pooled_width() * kLanes);
    ConvReluPoolBackward(shape, weight.data(), x.data(), y.data(), largest.data(), dy.data(), dweight.data(),
                         dbias.data(), input_gradient ? dx.data() : nullptr, scratch.data());
  }

  // Index into x of the input that weight (i, ky, kx) meets at pixel (row, column) before pooling.
  int64_t Input(int64_t i, int64_t row, int64_t column, int64_t lane) const {
    return ((i * shape.in_height + row) * shape.in_width + column) * kLanes + lane;
  }
  // Calls body(index into weight, index into x) for every product of one pixel of channel `o` before pooling.
  void ForEachProduct(int64_t o, int64_t row, int64_t column, int64_t lane,
                      const std::function<void(int64_t, int64_t)>& body) const {
    for (int64_t i = 0; i < shape.in_channels; ++i) {
      for (int64_t ky = 0; ky < shape.kernel; ++ky) {
        for (int64_t kx = 0; kx < shape.kernel; ++kx) {
          body(((o * shape.in_channels + i) * shape.kernel + ky) * shape.kernel + kx,
               Input(i, row + ky, column + kx, lane));
        }
      }
    }
  }
  // Calls body(index into y, channel, pooled row and column, lane).
  void ForEachOutput(const std::function<void(int64_t, int64_t, int64_t, int64_t, int64_t)>& body) const {
    const int64_t height = shape.pooled_height(), width = shape.pooled_width();
    for (int64_t at = 0; at < y.size(); ++at) {
      const int64_t pixel = at / kLanes;
      body(at, pixel / (height * width), pixel / width % height, pixel % width, at % kLanes);
    }
  }

  ConvShape shape;
  AlignedFloats weight, bias, x, dy, y;
  std::vector<uint8_t> largest;
  AlignedFloats dweight, dbias, dx;
};

void ForEachLayer(const std::function<void(Layer*)>& body) {
  testing::ForEachTarget([&] {
    for (const ConvShape& shape : kShapes) {
      SCOPED_TRACE(::testing::Message() << shape.in_channels << " to " << shape.out_channels << " channels, kernel "
                                        << shape.kernel << ", " << shape.in_height << " by " << shape.in_width);
      Layer layer(shape);
      layer.Forward();
      body(&layer);
    }
  });
}

TEST(ConvReluPoolForward, IsTheDoublePrecisionLoop) {
  ForEachLayer([](Layer* layer) {
    layer->ForEachOutput([&](int64_t at, int64_t o, int64_t py, int64_t px, int64_t lane) {
      double pixel[4];
      for (int64_t p = 0; p < 4; ++p) {
        pixel[p] = layer->bias[o];
        layer->ForEachProduct(o, 2 * py + p / 2, 2 * px + p % 2, lane,
                              [&](int64_t w, int64_t x) { pixel[p] += double{layer->weight[w]} * layer->x[x]; });
      }
      const double best = *std::max_element(pixel, pixel + 4);
      ASSERT_NEAR(layer->y[at], std::max(best, 0.0), 1e-5);
      ASSERT_NEAR(pixel[layer->largest[static_cast<size_t>(at)]], best, 1e-5) << "largest";
    });
  });
}

TEST(ConvReluPoolForward, TakesTheFirstOfEqualPixels) {
  testing::ForEachTarget([] {
    Layer layer({1, 1, 3, 4, 4});
    std::fill_n(layer.x.data(), layer.x.size(), 1.0f);
    layer.Forward();
    EXPECT_EQ(layer.largest, std::vector<uint8_t>(kLanes, 0));
  });
}

TEST(ConvReluPoolForward, APixelThatIsNoNumberIsKeptByPoolAndRectifier) {
  testing::ForEachTarget([] {
    for (int64_t p = 0; p < 4; ++p) {
      Layer layer({1, 2, 3, 4, 4});
      // The corner of the input that only pixel p of the window sees.
      layer.x[layer.Input(0, p / 2 * 3, p % 2 * 3, 9)] = kNan;
      layer.Forward();
      for (int64_t i = 0; i < layer.y.size(); ++i) EXPECT_EQ(std::isnan(layer.y[i]), i % kLanes == 9) << "pixel " << p;
    }
  });
}

TEST(ConvReluPoolBackward, IsTheDoublePrecisionLoop) {
  ForEachLayer([](Layer* layer) {
    layer->Backward();
    const ConvShape& s = layer->shape;
    std::vector<double> dweight(static_cast<size_t>(layer->dweight.size())), dx(static_cast<size_t>(layer->dx.size()));
    std::vector<double> dbias(static_cast<size_t>(layer->dbias.size()));
    layer->ForEachOutput([&](int64_t at, int64_t o, int64_t py, int64_t px, int64_t lane) {
      if (!(layer->y[at] > 0)) return;
      const int64_t p = layer->largest[static_cast<size_t>(at)];
      dbias[static_cast<size_t>(o * kLanes + lane)] += layer->dy[at];
      layer->ForEachProduct(o, 2 * py + p / 2, 2 * px + p % 2, lane, [&](int64_t w, int64_t x) {
        dweight[static_cast<size_t>(w * kLanes + lane)] += double{layer->dy[at]} * layer->x[x];
        dx[static_cast<size_t>(x)] += double{layer->dy[at]} * layer->weight[w];
      });
    });
    const double tolerance = 1e-6 * static_cast<double>(s.pooled_height() * s.pooled_width() + 8);
    for (size_t i = 0; i < dbias.size(); ++i) ASSERT_NEAR(layer->dbias[static_cast<int64_t>(i)], dbias[i], tolerance);
    for (size_t i = 0; i < dweight.size(); ++i) {
      ASSERT_NEAR(layer->dweight[static_cast<int64_t>(i)], dweight[i], tolerance) << "weight " << i / kLanes;
    }
    for (size_t i = 0; i < dx.size(); ++i)
      ASSERT_NEAR(layer->dx[static_cast<int64_t>(i)], dx[i], 5e-5) << "input " << i;
  });
}

TEST(ConvReluPoolBackward, AddsToWeightsAndBiasesAndOverwritesInputs) {
  testing::ForEachTarget([] {
    Layer once({2, 3, 5, 6, 9});
    once.Forward();
    Layer twice = once;
    once.Backward();
    twice.Backward();
    twice.Backward();
    for (int64_t i = 0; i < once.dweight.size(); ++i) EXPECT_NEAR(twice.dweight[i], 2 * once.dweight[i], 1e-5);
    for (int64_t i = 0; i < once.dbias.size(); ++i) EXPECT_NEAR(twice.dbias[i], 2 * once.dbias[i], 1e-5);
    EXPECT_EQ(twice.dx.ToVector(), once.dx.ToVector());
  });
}

TEST(ConvReluPoolBackward, SumsTheSameWithoutAnInputGradient) {
  Layer with({3, 5, 5, 9, 14});
  with.Forward();
  Layer without = with;
  with.Backward(true);
  without.Backward(false);
  EXPECT_EQ(without.dweight.ToVector(), with.dweight.ToVector());
  EXPECT_EQ(without.dbias.ToVector(), with.dbias.ToVector());
}

TEST(ConvLayer, ImagesDependNeitherOnTheirLaneNorOnABrokenNeighbour) {
  ForEachLayer([](Layer* layer) {
    layer->Backward();
    Layer moved(layer->shape);  // lane 3 becomes lane 12; lane 4 is broken
    for (int64_t i = 0; i < moved.x.size(); i += kLanes) {
      moved.x[i + 12] = layer->x[i + 3];
      moved.x[i + 4] = kNan;
    }
    for (int64_t i = 0; i < moved.dy.size(); i += kLanes) {
      moved.dy[i + 12] = layer->dy[i + 3];
      moved.dy[i + 4] = kNan;
    }
    moved.Forward();
    moved.Backward();
    const auto expect_moved = [](const AlignedFloats& from, const AlignedFloats& to) {
      for (int64_t i = 0; i < from.size(); i += kLanes) {
        ASSERT_EQ(to[i + 12], from[i + 3]);
        for (const int64_t lane : {0, 3, 5, 15}) ASSERT_EQ(to[i + lane], from[i + lane]);
      }
    };
    expect_moved(layer->y, moved.y);
    expect_moved(layer->dx, moved.dx);
    expect_moved(layer->dweight, moved.dweight);
    expect_moved(layer->dbias, moved.dbias);
  });
}

TEST(ConvLayer, HasTheSameBitsForEveryVectorWidth) {
  for (const ConvShape& shape : kShapes) {
    Layer widest(shape);
    widest.Forward();
    widest.Backward();
    testing::ForEachFusedTarget([&] {
      Layer layer(shape);
      layer.Forward();
      layer.Backward();
      EXPECT_EQ(layer.y.ToVector(), widest.y.ToVector());
      EXPECT_EQ(layer.largest, widest.largest);
      EXPECT_EQ(layer.dweight.ToVector(), widest.dweight.ToVector());
      EXPECT_EQ(layer.dbias.ToVector(), widest.dbias.ToVector());
      EXPECT_EQ(layer.dx.ToVector(), widest.dx.ToVector());
    });
  }
}

TEST(SumLanes, AddsLanesOfSlicesInOrder) {
  const AlignedFloats in(3 * 5 * kLanes, 8);
  std::vector<float> out(6, -7);
  SumLanes(in.data(), 3, 5, out.data());
  for (int64_t i = 0; i < 5; ++i) {
    float sum = 0;
    for (int64_t s = 0; s < 3; ++s) {
      for (int64_t l = 0; l < kLanes; ++l) sum += in[(s * 5 + i) * kLanes + l];
    }
    EXPECT_EQ(out[static_cast<size_t>(i)], sum);
  }
  EXPECT_EQ(out[5], -7);
}

}  // namespace
}  // namespace chainfleet
