#include "worker/numerics/dataset/corrupted_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

struct Shape {
  int64_t channels, height, width;
  std::vector<int64_t> vector() const { return {channels, height, width}; }
  int64_t size() const { return channels * height * width; }
};
constexpr Shape kShapes[] = {{1, 28, 28}, {3, 32, 32}, {1, 8, 8}, {3, 9, 17}, {4, 11, 64}};

// Waves and a bright bar, another picture for each row, in [0.05, 0.95].
std::vector<float> Picture(const Shape& shape, int64_t row) {
  std::vector<float> image;
  const double r = static_cast<double>(row);
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t i = 0; i < shape.height; ++i) {
      for (int64_t j = 0; j < shape.width; ++j) {
        const double y = static_cast<double>(i) / static_cast<double>(shape.height);
        const double x = static_cast<double>(j) / static_cast<double>(shape.width);
        const double wave = std::sin(7 * x + r + static_cast<double>(c)) * std::cos(5 * y - 0.3 * r);
        image.push_back(static_cast<float>(0.35 + 0.3 * wave + (std::abs(x - y) < 0.15 ? 0.3 : 0)));
      }
    }
  }
  return image;
}

std::vector<float> Changed(const Corruption& corruption, const Shape& shape, int64_t row, std::vector<float> image) {
  const auto corrupter = Corrupter::Create(corruption, shape.vector());
  EXPECT_TRUE(corrupter.ok()) << corrupter.status();
  corrupter->Change(row, image.data());
  return image;
}

struct Moments {
  double mean, variance;
};

// Moments of a constant image under `corruption`, over many values.
Moments OfConstant(const Corruption& corruption, float value) {
  const Shape shape = {3, 128, 128};
  const auto values = Changed(corruption, shape, 5, std::vector<float>(shape.size(), value));
  const auto n = static_cast<double>(values.size());
  double mean = 0, variance = 0;
  for (const float v : values) mean += v / n;
  for (const float v : values) variance += (v - mean) * (v - mean) / n;
  return {mean, variance};
}

// 49,152 values: means are within 5 deviations, variances within 5 of theirs (kurtosis at most 9).
void ExpectMoments(const Moments& found, double mean, double variance) {
  const double n = 3 * 128 * 128;
  EXPECT_NEAR(found.mean, mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(found.variance, variance, 5 * variance * std::sqrt(8 / n));
}

// Grey values so far from the ends that clipping affects at most one value in 10^9.
TEST(CorruptedImages, NoiseHasTheMomentsOfItsLaw) {
  ExpectMoments(OfConstant({"gaussian_noise", 1, 3}, 0.5f), 0.5, 0.08 * 0.08);
  ExpectMoments(OfConstant({"speckle_noise", 1, 3}, 0.5f), 0.5, 0.15 * 0.15 * 0.25);
  ExpectMoments(OfConstant({"shot_noise", 1, 3}, 0.4f), 0.4, 0.4 / 60);
  ExpectMoments(OfConstant({"shot_noise", 3, 3}, 0.2f), 0.2, 0.2 / 12);
}

TEST(CorruptedImages, ImpulsesAreBlackAndWhiteInEqualParts) {
  const double shares[] = {.03, .06, .09, .17, .27};
  for (int severity = 1; severity <= 5; ++severity) {
    // Mean x (1 - p) + p / 2; of the square x^2 (1 - p) + p / 2.
    const double p = shares[severity - 1], x = 0.25, mean = x * (1 - p) + p / 2;
    ExpectMoments(OfConstant({"impulse_noise", severity, 3}, 0.25f), mean, x * x * (1 - p) + p / 2 - mean * mean);
    const Shape shape = {1, 100, 100};
    const auto values = Changed({"impulse_noise", severity, 3}, shape, 0, std::vector<float>(shape.size(), 0.25f));
    EXPECT_EQ(std::set<float>(values.begin(), values.end()), (std::set<float>{0, 0.25f, 1}));
  }
}

TEST(CorruptedImages, CountsOfLightAreWholeAndNoneInTheDark) {
  const Shape shape = {1, 16, 16};
  for (const float value : Changed({"shot_noise", 2, 0}, shape, 0, Picture(shape, 0))) {
    EXPECT_NEAR(value * 25, std::round(value * 25), 1e-5);
  }
  EXPECT_THAT(Changed({"shot_noise", 2, 0}, shape, 0, std::vector<float>(256, 0.0f)), Each(0.0f));
}

TEST(CorruptedImages, BrightnessAddsAndContrastShrinksByHand) {
  const Shape shape = {2, 8, 8};
  std::vector<float> image(128);
  for (int i = 0; i < 128; ++i) image[i] = static_cast<float>(i) / 127;
  const auto brighter = Changed({"brightness", 3, 0}, shape, 0, image);
  const auto flatter = Changed({"contrast", 2, 0}, shape, 0, image);
  for (int i = 0; i < 128; ++i) {
    EXPECT_NEAR(brighter[i], std::min(i / 127.0 + 0.3, 1.0), 1e-6);
    const double mean = (i < 64 ? 31.5 : 95.5) / 127;  // means of 0..63 and of 64..127
    EXPECT_NEAR(flatter[i], mean + 0.3 * (i / 127.0 - mean), 1e-6);
  }
}

TEST(CorruptedImages, PixelsAreTheMeansOfWhatTheyCover) {
  const Shape shape = {1, 8, 8};
  std::vector<float> image(64);
  for (int i = 0; i < 64; ++i) image[i] = static_cast<float>(i * 29 % 64) / 64;
  // A fifth of 8, rounded up: blocks of 4 by 4.
  const auto coarse = Changed({"pixelate", 5, 0}, shape, 0, image);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      double sum = 0;
      for (int i = 0; i < 16; ++i) sum += image[(y / 4 * 4 + i / 4) * 8 + x / 4 * 4 + i % 4];
      EXPECT_NEAR(coarse[y * 8 + x], sum / 16, 1e-6);
    }
  }
  // Three fifths: 5 stretches of 8/5 pixels. Pixel 1's middle, 1.5, is in the first, [0, 1.6); pixel 2's in the second,
  // [1.6, 3.2): 0.4 of pixel 1, all of pixel 2 and 0.2 of pixel 3.
  std::vector<float> ramp(64);
  for (int i = 0; i < 64; ++i) ramp[i] = static_cast<float>(i % 8) / 8;
  const auto fine = Changed({"pixelate", 2, 0}, shape, 0, ramp);
  EXPECT_NEAR(fine[0], 0.6 / 1.6 / 8, 1e-6);
  EXPECT_NEAR(fine[1], 0.6 / 1.6 / 8, 1e-6);
  EXPECT_NEAR(fine[2], (0.4 * 1 + 2 + 0.2 * 3) / 1.6 / 8, 1e-6);
}

TEST(CorruptedImages, FogLightensAllChannelsByOneFieldAtEverySeverity) {
  const Shape shape = {3, 20, 30};
  const std::vector<float> image = Picture(shape, 4);
  const auto thin = Changed({"fog", 1, 8}, shape, 4, image), thick = Changed({"fog", 5, 8}, shape, 4, image);
  double least = 1, most = 0;
  for (int64_t i = 0; i < shape.size(); ++i) {
    const double f = (thin[i] - image[i]) / (0.3 * (1 - image[i]));
    EXPECT_NEAR(thick[i], image[i] + 0.9 * f * (1 - image[i]), 1e-5);
    if (i >= 600) {
      EXPECT_NEAR(f, (thin[i - 600] - image[i - 600]) / (0.3 * (1 - image[i - 600])), 1e-4);
    }
    least = std::min(least, f);
    most = std::max(most, f);
  }
  EXPECT_NEAR(least, 0, 1e-4);
  EXPECT_NEAR(most, 1, 1e-4);
}

TEST(CorruptedImages, RotationMovesPixelsAboutTheMiddle) {
  const Shape shape = {1, 41, 41};
  std::vector<float> image(shape.size());
  image[20 * 41 + 35] = 1;  // 15 to the right of the middle
  const auto turned = Changed({"rotate", 5, 0}, shape, 2, image);
  double sum = 0, down = 0, right = 0;
  for (int64_t i = 0; i < shape.size(); ++i) {
    sum += turned[i];
    down += turned[i] * static_cast<double>(i / 41 - 20);
    right += turned[i] * static_cast<double>(i % 41 - 20);
  }
  EXPECT_NEAR(right / sum, 15 * std::cos(M_PI / 6), 0.3);
  EXPECT_NEAR(std::abs(down / sum), 15 * std::sin(M_PI / 6), 0.3);
}

TEST(CorruptedImages, DirectionsDifferFromRowToRow) {
  const Shape shape = {1, 16, 16};
  for (const char* name : {"rotate", "motion_blur", "fog", "gaussian_noise"}) {
    std::set<std::vector<float>> images;
    for (int64_t row = 0; row < 32; ++row) images.insert(Changed({name, 3, 0}, shape, row, Picture(shape, 0)));
    EXPECT_EQ(images.size(), name == std::string("rotate") ? 2u : 32u) << name;
  }
}

class EachCorruption : public ::testing::TestWithParam<std::string> {};

TEST_P(EachCorruption, IsFurtherFromTheOriginalAtEachSeverity) {
  for (const Shape& shape : kShapes) {
    double before = 0;
    for (int severity = 1; severity <= 5; ++severity) {
      double distance = 0;
      for (int64_t row = 0; row < 16; ++row) {
        const auto image = Picture(shape, row), changed = Changed({GetParam(), severity, 1}, shape, row, image);
        for (size_t i = 0; i < image.size(); ++i) distance += std::pow(changed[i] - image[i], 2);
      }
      EXPECT_GT(distance, before) << "severity " << severity << " of [" << shape.channels << ", " << shape.height
                                  << ", " << shape.width << "]";
      before = distance;
    }
  }
}

TEST_P(EachCorruption, StaysWithinZeroAndOne) {
  const Shape shape = {3, 12, 10};
  std::vector<float> image = Picture(shape, 0);
  image[0] = -3, image[1] = 7, image[2] = 0, image[3] = 1;
  EXPECT_THAT(Changed({GetParam(), 5, 1}, shape, 0, image), Each(AllOf(Ge(0), Le(1))));
}

TEST_P(EachCorruption, IsAFunctionOfSeedRowAndImage) {
  const Shape shape = {3, 10, 12};
  const auto image = Picture(shape, 1), first = Changed({GetParam(), 4, 9}, shape, 6, image);
  EXPECT_EQ(Changed({GetParam(), 4, 9}, shape, 6, image), first);
  const bool random =
      std::set<std::string>{"gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "motion_blur", "fog"}
          .contains(GetParam());
  if (GetParam() == "rotate") return;  // one of two ways
  EXPECT_EQ(Changed({GetParam(), 4, 10}, shape, 6, image) != first, random);
  EXPECT_EQ(Changed({GetParam(), 4, 9}, shape, 7, image) != first, random);
}

TEST_P(EachCorruption, LeavesConstantImagesAloneUnlessItChangesValues) {
  static const std::set<std::string> kOfPlaces = {"defocus_blur", "gaussian_blur", "motion_blur",
                                                  "pixelate",     "rotate",        "contrast"};
  const Shape shape = {3, 13, 8};
  const auto changed = Changed({GetParam(), 5, 1}, shape, 0, std::vector<float>(shape.size(), 0.3f));
  if (kOfPlaces.contains(GetParam())) {
    EXPECT_THAT(changed, Each(FloatNear(0.3f, 1e-6f)));
  } else {
    EXPECT_NE(changed, std::vector<float>(shape.size(), 0.3f));
  }
}

INSTANTIATE_TEST_SUITE_P(CorruptedImages, EachCorruption, ::testing::ValuesIn(CorruptionNames()),
                         [](const auto& tested) { return tested.param; });

TEST(CorruptedImages, RefusesInputsThatItCannotChange) {
  EXPECT_THAT(Corrupter::Create({"snow", 1, 0}, {1, 28, 28}).status().ToString(), HasSubstr("gaussian_noise"));
  EXPECT_TRUE(absl::IsInvalidArgument(Corrupter::Create({"fog", 9, 0}, {1, 28, 28}).status()));
  EXPECT_THAT(Corrupter::Create({"fog", 1, 0}, {784}).status().ToString(), HasSubstr("inputs [784]"));
}

}  // namespace
}  // namespace chainfleet
