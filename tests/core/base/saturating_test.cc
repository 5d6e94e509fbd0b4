#include "core/base/saturating.h"

#include <gtest/gtest.h>

namespace chainfleet {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

TEST(Saturating, IsExactInRange) {
  EXPECT_EQ(SaturatingAdd(3, -5), -2);
  EXPECT_EQ(SaturatingMultiply(-3, 5), -15);
  EXPECT_EQ(SaturatingMultiply(kMost, 1), kMost);
}

TEST(Saturating, StopsAtTheLargestAndTheSmallestValue) {
  EXPECT_EQ(SaturatingAdd(kMost, 1), kMost);
  EXPECT_EQ(SaturatingAdd(kLeast, -1), kLeast);
  EXPECT_EQ(SaturatingMultiply(kMost / 2, 3), kMost);
  EXPECT_EQ(SaturatingMultiply(-kMost, -2), kMost);
  EXPECT_EQ(SaturatingMultiply(kMost, -2), kLeast);
}

}  // namespace
}  // namespace chainfleet
