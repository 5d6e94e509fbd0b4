// Offsets and mirrors of augmentation: uniform, and independent over images, steps and chains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "worker/numerics/kernels/augment.h"

namespace chainfleet {
namespace {

constexpr AugmentationSpec kCifar = {.crop_padding = 4, .flip = true};
constexpr int64_t kOffsets = 9, kCells = 2 * kOffsets * kOffsets;
constexpr int64_t kImages = 648'000;  // 4,000 expected in a cell

int64_t CellOf(const ImageChange& change) {
  EXPECT_LE(std::max(std::abs(change.down), std::abs(change.right)), 4);
  return ((change.down + 4) * kOffsets + change.right + 4) * 2 + change.mirror;
}

// Of counts that are to be equal; its mean is their number less one.
double ChiSquare(const std::vector<int64_t>& counts) {
  double all = 0, sum = 0;
  for (const int64_t count : counts) all += static_cast<double>(count);
  const double expected = all / static_cast<double>(counts.size());
  for (const int64_t count : counts) sum += std::pow(static_cast<double>(count) - expected, 2) / expected;
  return sum;
}

void ExpectUniform(const std::vector<int64_t>& counts) {
  const auto freedom = static_cast<double>(counts.size() - 1);
  EXPECT_NEAR(ChiSquare(counts), freedom, 4 * std::sqrt(2 * freedom));
}

// `draw(i)` for image i of kImages.
using Draw = std::function<ImageChange(int64_t i)>;

TEST(AugmentationLaws, OffsetsAndMirrorsAreJointlyUniform) {
  const Draw draws[] = {
      [](int64_t i) { return DrawImageChange(kCifar, RngKey{1}, 3, static_cast<uint32_t>(i)); },
      [](int64_t i) { return DrawImageChange(kCifar, RngKey{1}, static_cast<uint64_t>(i), 3); },
      [](int64_t i) { return DrawImageChange(kCifar, Fold(RngKey{1}, static_cast<uint64_t>(i)), 3, 3); },
  };
  for (const Draw& draw : draws) {
    std::vector<int64_t> counts(kCells);
    for (int64_t i = 0; i < kImages; ++i) ++counts[CellOf(draw(i))];
    ExpectUniform(counts);
  }
}

TEST(AugmentationLaws, NeighboursInBatchStepAndChainAreIndependent) {
  const auto key = [](int64_t chain) { return Fold(RngKey{7}, static_cast<uint64_t>(chain)); };
  const auto at = [&](int64_t chain, int64_t step, int64_t position) {
    return DrawImageChange(kCifar, key(chain), static_cast<uint64_t>(step), static_cast<uint32_t>(position));
  };
  const Draw neighbours[] = {
      [&](int64_t i) { return at(2, i / 128, i % 128 + 1); },
      [&](int64_t i) { return at(2, i / 128 + 1, i % 128); },
      [&](int64_t i) { return at(3, i / 128, i % 128); },
  };
  for (const Draw& neighbour : neighbours) {
    std::vector<int64_t> counts(kOffsets * kOffsets * 4);
    for (int64_t i = 0; i < kImages; ++i) {
      const ImageChange one = at(2, i / 128, i % 128), other = neighbour(i);
      ++counts[((one.down + 4) * kOffsets + other.down + 4) * 4 + one.mirror * 2 + other.mirror];
    }
    ExpectUniform(counts);
  }
}

TEST(AugmentationLaws, WhatIsNotAskedForIsNotDone) {
  for (uint32_t i = 0; i < 1000; ++i) {
    const ImageChange crop = DrawImageChange({.crop_padding = 2}, RngKey{1}, 5, i);
    const ImageChange flip = DrawImageChange({.flip = true}, RngKey{1}, 5, i);
    EXPECT_FALSE(crop.mirror);
    EXPECT_TRUE(flip.down == 0 && flip.right == 0);
  }
}

}  // namespace
}  // namespace chainfleet
