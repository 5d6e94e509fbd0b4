#include "worker/numerics/kernels/dense.h"

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
// Sizes around the register blocks (6 and 2 outputs), the vector (16 inputs) and the pass (128 inputs).
const std::vector<DenseShape> kShapes = {{1, 1}, {7, 3}, {16, 6}, {17, 13}, {128, 2}, {129, 7}, {300, 10}};

// A sum of `count` products in double, and the largest error of a float32 sum.
struct Exact {
  double value = 0, magnitude = 0;
  void Add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
  double tolerance() const { return 2e-6 * magnitude; }
};

struct Layer {
  Layer(DenseShape s, int64_t num_groups)
      : shape(s),
        groups(num_groups),
        weight(s.inputs * s.outputs, 1),
        bias(s.outputs, 2),
        x(num_groups * s.inputs * kLanes, 3),
        delta(num_groups * s.outputs * kLanes, 4) {}

  AlignedFloats Forward(bool relu) const {
    AlignedFloats y(groups * shape.outputs * kLanes);
    DenseForward(shape, weight.data(), bias.data(), x.data(), groups, relu, y.data());
    return y;
  }
  AlignedFloats InputGradient() const {
    AlignedFloats dx(groups * shape.inputs * kLanes);
    DenseInputGradient(shape, weight.data(), delta.data(), x.data(), groups, dx.data());
    return dx;
  }

  DenseShape shape;
  int64_t groups;
  AlignedFloats weight, bias, x, delta;
};

void ForEachLayer(const std::function<void(const Layer&)>& body) {
  testing::ForEachTarget([&] {
    for (const DenseShape& shape : kShapes) {
      for (int64_t groups = 1; groups <= kSliceGroups; ++groups) {
        SCOPED_TRACE(::testing::Message() << shape.inputs << " inputs, " << shape.outputs << " outputs, " << groups);
        body(Layer(shape, groups));
      }
    }
  });
}

TEST(DenseForward, IsTheDoublePrecisionProduct) {
  ForEachLayer([](const Layer& layer) {
    const auto [inputs, outputs] = layer.shape;
    const AlignedFloats y = layer.Forward(false), rectified = layer.Forward(true);
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t lane = i % kLanes, o = i / kLanes % outputs, group = i / kLanes / outputs;
      Exact exact;
      exact.Add(layer.bias[o]);
      for (int64_t k = 0; k < inputs; ++k) {
        exact.Add(double{layer.weight[o * inputs + k]} * layer.x[(group * inputs + k) * kLanes + lane]);
      }
      ASSERT_NEAR(y[i], exact.value, exact.tolerance()) << "output " << o << " lane " << lane << " group " << group;
      ASSERT_EQ(rectified[i], y[i] > 0 ? y[i] : 0);
    }
  });
}

TEST(DenseInputGradient, IsTheDoublePrecisionProductWhereTheRectifierWasOpen) {
  ForEachLayer([](const Layer& layer) {
    const auto [inputs, outputs] = layer.shape;
    const AlignedFloats dx = layer.InputGradient();
    for (int64_t i = 0; i < dx.size(); ++i) {
      const int64_t lane = i % kLanes, k = i / kLanes % inputs, group = i / kLanes / inputs;
      Exact exact;
      for (int64_t o = 0; layer.x[i] > 0 && o < outputs; ++o) {
        exact.Add(double{layer.weight[o * inputs + k]} * layer.delta[(group * outputs + o) * kLanes + lane]);
      }
      ASSERT_NEAR(dx[i], exact.value, exact.tolerance()) << "input " << k << " lane " << lane << " group " << group;
    }
  });
}

// Returns the gradient of the given rows of a layer over `images`; all values outside a row's inputs are NaN.
struct WeightGradient {
  WeightGradient(DenseShape s, int64_t images)
      : shape(s),
        num_images(images),
        delta(NumGroups(images) * s.outputs * kLanes, 4),
        rows(images * RowStride(s.inputs), 5),
        dweight(static_cast<size_t>(s.inputs * s.outputs), kNan),
        dbias(static_cast<size_t>(s.outputs), kNan) {
    for (int64_t i = 0; i < delta.size(); ++i) {
      if (i / kLanes / s.outputs * kLanes + i % kLanes >= images) delta[i] = 0;
    }
    for (int64_t i = 0; i < rows.size(); ++i) {
      if (i % RowStride(s.inputs) >= s.inputs) rows[i] = kNan;
    }
  }
  float Delta(int64_t image, int64_t o) const {
    return delta[(image / kLanes * shape.outputs + o) * kLanes + image % kLanes];
  }
  void Compute(int64_t first, int64_t last) {
    DenseWeightGradient(shape, delta.data(), rows.data(), num_images, first, last, dweight.data(), dbias.data());
  }

  DenseShape shape;
  int64_t num_images;
  AlignedFloats delta, rows;
  std::vector<float> dweight, dbias;
};

TEST(DenseWeightGradient, IsTheDoublePrecisionSumOverImages) {
  testing::ForEachTarget([] {
    for (const DenseShape& shape : kShapes) {
      for (const int64_t images : {1, 15, 16, 17, 50}) {
        WeightGradient gradient(shape, images);
        gradient.Compute(0, shape.outputs);
        for (int64_t o = 0; o < shape.outputs; ++o) {
          Exact bias;
          for (int64_t image = 0; image < images; ++image) bias.Add(gradient.Delta(image, o));
          ASSERT_NEAR(gradient.dbias[static_cast<size_t>(o)], bias.value, bias.tolerance());
          for (int64_t i = 0; i < shape.inputs; ++i) {
            Exact exact;
            for (int64_t image = 0; image < images; ++image) {
              exact.Add(double{gradient.Delta(image, o)} * gradient.rows[image * RowStride(shape.inputs) + i]);
            }
            ASSERT_NEAR(gradient.dweight[static_cast<size_t>(o * shape.inputs + i)], exact.value, exact.tolerance())
                << shape.inputs << " inputs, " << images << " images, output " << o << " input " << i;
          }
        }
      }
    }
  });
}

TEST(DenseWeightGradient, HasTheSameBitsForEveryCutOfItsRows) {
  WeightGradient whole({37, 13}, 50), cut({37, 13}, 50);
  whole.Compute(0, 13);
  cut.Compute(5, 6);
  EXPECT_TRUE(std::isnan(cut.dweight[5 * 37 - 1]) && std::isnan(cut.dweight[6 * 37])) << "rows of others are left";
  EXPECT_TRUE(std::isnan(cut.dbias[4]) && std::isnan(cut.dbias[6]));
  for (const auto& [first, last] : {std::pair{0, 5}, {6, 12}, {12, 13}}) cut.Compute(first, last);
  EXPECT_EQ(cut.dweight, whole.dweight);
  EXPECT_EQ(cut.dbias, whole.dbias);
}

TEST(DenseLayer, BitsOfAnImageDoNotDependOnItsPlace) {
  testing::ForEachTarget([] {
    const Layer batch({129, 13}, 4);
    Layer alone({129, 13}, 1);
    const auto move = [](const AlignedFloats& from, int64_t features, AlignedFloats* to) {
      for (int64_t f = 0; f < features; ++f) (*to)[f * kLanes + 2] = from[(3 * features + f) * kLanes + 11];
    };
    move(batch.x, 129, &alone.x);
    move(batch.delta, 13, &alone.delta);
    const AlignedFloats y = batch.Forward(true), y_alone = alone.Forward(true);
    for (int64_t o = 0; o < 13; ++o) EXPECT_EQ(y_alone[o * kLanes + 2], y[(3 * 13 + o) * kLanes + 11]);
    const AlignedFloats dx = batch.InputGradient(), dx_alone = alone.InputGradient();
    for (int64_t i = 0; i < 129; ++i) EXPECT_EQ(dx_alone[i * kLanes + 2], dx[(3 * 129 + i) * kLanes + 11]);
  });
}

TEST(DenseLayer, ANonFiniteImageAffectsNoOther) {
  testing::ForEachTarget([] {
    const Layer healthy({129, 13}, 2);
    Layer broken = healthy;
    broken.x[(129 + 70) * kLanes + 6] = kNan;  // group 1, lane 6
    broken.delta[(13 + 3) * kLanes + 6] = kNan;
    const AlignedFloats y = healthy.Forward(true), y_broken = broken.Forward(true);
    for (int64_t i = 0; i < y.size(); ++i) {
      if (i >= 13 * kLanes && i % kLanes == 6) {
        EXPECT_TRUE(std::isnan(y_broken[i])) << "a rectifier must not hide it";
      } else {
        EXPECT_EQ(y_broken[i], y[i]);
      }
    }
    const AlignedFloats dx = healthy.InputGradient(), dx_broken = broken.InputGradient();
    for (int64_t i = 0; i < dx.size(); ++i) {
      if (i >= 129 * kLanes && i % kLanes == 6) continue;
      EXPECT_EQ(dx_broken[i], dx[i]);
    }
  });
}

TEST(DenseLayer, HasTheSameBitsForEveryVectorWidth) {
  const Layer layer({129, 13}, 3);
  WeightGradient gradient({129, 13}, 50);
  gradient.Compute(0, 13);
  const std::vector<float> y = layer.Forward(true).ToVector(), dx = layer.InputGradient().ToVector();
  const std::vector<float> dweight = gradient.dweight;
  testing::ForEachFusedTarget([&] {
    EXPECT_EQ(layer.Forward(true).ToVector(), y);
    EXPECT_EQ(layer.InputGradient().ToVector(), dx);
    gradient.Compute(0, 13);
    EXPECT_EQ(gradient.dweight, dweight);
  });
}

}  // namespace
}  // namespace chainfleet
