#include "worker/numerics/kernels/square_sum.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/numerics/kernels/lane_arrays.h"

namespace chainfleet {
namespace {

using testing::AlignedFloats;

// Squares of floats are exact in double, so that even a fused sum has these bits.
double ByLanes(const float* x, int64_t count) {
  double sums[16] = {}, total = 0;
  for (int64_t i = 0; i < count; ++i) sums[i % 16] += static_cast<double>(x[i]) * x[i];
  for (const double sum : sums) total += sum;
  return total;
}

TEST(SquareSum, HasTheBitsOfSixteenPartialSumsForEveryLengthAndVectorWidth) {
  const AlignedFloats x(1100, 1);
  testing::ForEachTarget([&] {
    for (const int64_t count : {0, 1, 7, 15, 16, 17, 31, 32, 33, 1000, 1024, 1037}) {
      EXPECT_EQ(SquareSum(x.data(), count), ByLanes(x.data(), count)) << count;
      EXPECT_EQ(SquareSum(x.data() + 1, count), ByLanes(x.data() + 1, count)) << count << " off the alignment";
    }
  });
}

TEST(SquareSum, AddsInDouble) {
  std::vector<float> x(33, 1e-4f);
  x[0] = 1e4f;
  EXPECT_NEAR(SquareSum(x.data(), 33) - 1e8, 32e-8, 1e-7);
  x.assign(33, 1e30f);
  EXPECT_NEAR(SquareSum(x.data(), 33) / 33e60, 1, 1e-6);
}

TEST(SquareSum, IsNotANumberIfOneValueIs) {
  testing::ForEachTarget([] {
    for (const int64_t bad : {0, 15, 16, 32}) {
      std::vector<float> x(33, 1);
      x[static_cast<size_t>(bad)] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(SquareSum(x.data(), 33))) << bad;
      EXPECT_EQ(SquareSum(x.data(), bad), static_cast<double>(bad)) << "values beyond the count are not read";
    }
  });
}

}  // namespace
}  // namespace chainfleet
