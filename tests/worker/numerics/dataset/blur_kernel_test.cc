#include "worker/numerics/dataset/blur_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace chainfleet {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pair;
using ::testing::SizeIs;

std::map<std::pair<int64_t, int64_t>, float> ByOffset(const BlurKernel& kernel) {
  std::map<std::pair<int64_t, int64_t>, float> weights;
  for (const BlurTap& tap : kernel) weights[{tap.down, tap.right}] = tap.weight;
  return weights;
}

std::vector<BlurKernel> Kernels() {
  std::vector<BlurKernel> kernels;
  for (const double size : {0.5, 0.625, 1.0, 2.3, 5.0}) {
    kernels.push_back(DiscKernel(size));
    kernels.push_back(GaussianKernel(size));
    for (const double angle : {0.0, 0.4, 1.5, 2.9}) kernels.push_back(LineKernel(3 * size, angle));
  }
  return kernels;
}

TEST(BlurKernel, WeightsSumToOneAndAreTheSameEitherWay) {
  for (const BlurKernel& kernel : Kernels()) {
    const auto weights = ByOffset(kernel);
    ASSERT_THAT(weights, SizeIs(kernel.size()));
    double sum = 0;
    for (const auto& [offset, weight] : weights) {
      sum += weight;
      EXPECT_GT(weight, 0);
      const auto opposite = weights.find({-offset.first, -offset.second});
      ASSERT_NE(opposite, weights.end());
      EXPECT_NEAR(opposite->second, weight, 1e-7);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(BlurKernel, ADiscOfHalfAPixelIsThatPixelAndALargeOneHasItsArea) {
  EXPECT_THAT(ByOffset(DiscKernel(0.5)), ElementsAre(Pair(Pair(0, 0), 1)));
  EXPECT_NEAR(1 / ByOffset(DiscKernel(10)).at({0, 0}), M_PI * 100, 1);  // the area of a disc in pixels
}

TEST(BlurKernel, AGaussianHasItsVarianceButForWhatIsCut) {
  double variance = 0;
  for (const BlurTap& tap : GaussianKernel(2)) variance += tap.weight * static_cast<double>(tap.right * tap.right);
  EXPECT_NEAR(variance, 4, 0.15);  // beyond 3 sigma lie 0.3 % of the weight and 3 % of the variance
}

TEST(BlurKernel, ALineHasTheVarianceOfAUniformLawInItsDirection) {
  const double length = 9, angle = 0.7;
  double along = 0, across = 0;
  for (const BlurTap& tap : LineKernel(length, angle)) {
    const auto x = static_cast<double>(tap.right), y = static_cast<double>(tap.down);
    along += tap.weight * std::pow(x * std::cos(angle) + y * std::sin(angle), 2);
    across += tap.weight * std::pow(y * std::cos(angle) - x * std::sin(angle), 2);
  }
  EXPECT_NEAR(along, length * length / 12, 0.3);  // interpolation adds about 1/6 each way
  EXPECT_NEAR(across, 0, 0.25);
}

TEST(BlurKernel, ConstantPlanesStay) {
  for (const BlurKernel& kernel : Kernels()) {
    std::vector<float> plane(9 * 11, 0.3f);
    Blur(kernel, 9, 11, plane.data());
    EXPECT_THAT(plane, Each(FloatNear(0.3f, 1e-6f)));
  }
}

// Mirrored edges return the light that leaves the image.
TEST(BlurKernel, DiscsAndGaussiansKeepTheMean) {
  std::vector<float> plane(10 * 8);
  for (size_t i = 0; i < plane.size(); ++i) plane[i] = static_cast<float>(i * 37 % 101) / 101;
  const double sum = std::accumulate(plane.begin(), plane.end(), 0.0);
  for (const BlurKernel& kernel : {DiscKernel(0.9), DiscKernel(3.2), GaussianKernel(0.8), GaussianKernel(2)}) {
    std::vector<float> blurred = plane;
    Blur(kernel, 10, 8, blurred.data());
    EXPECT_NEAR(std::accumulate(blurred.begin(), blurred.end(), 0.0), sum, 1e-5 * sum);
    EXPECT_NE(blurred, plane);
  }
}

TEST(BlurKernel, AWeightedMeanByHand) {
  const BlurKernel kernel = {{0, -1, 0.25f}, {0, 0, 0.5f}, {1, 0, 0.25f}};
  std::vector<float> plane = {1, 2, 4, 8, 16, 32};
  Blur(kernel, 2, 3, plane.data());
  EXPECT_THAT(plane, ElementsAre(0.25f + 0.5f + 2, 0.25f + 1 + 4, 0.5f + 2 + 8,  // row 0
                                 2 + 4 + 2, 2 + 8 + 4, 4 + 16 + 8));             // its own mirror image lies below
}

}  // namespace
}  // namespace chainfleet
