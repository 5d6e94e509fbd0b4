#include "worker/numerics/models/row_positions.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace chainfleet {
namespace {

TEST(RowPositions, SeesOneChangedBitAtAnyPosition) {
  for (int64_t row = 0; row < 4; ++row) {
    const at::Tensor values = at::ones({4, 3});
    EXPECT_TRUE(SameAtPositions(values, 4, 1));
    values.mutable_data_ptr<float>()[row * 3 + 2] = std::nextafter(1.0f, 2.0f);
    EXPECT_FALSE(SameAtPositions(values, 4, 1)) << row;
  }
}

TEST(RowPositions, LeavesOutPositionsBetweenSteps) {
  const at::Tensor values = at::ones({8, 3});
  for (const int64_t odd : {1, 3, 5, 7}) values.select(0, odd).fill_(2);
  EXPECT_FALSE(SameAtPositions(values, 8, 1));
  EXPECT_TRUE(SameAtPositions(values, 8, 2));
  values.select(0, 6).fill_(3);
  EXPECT_FALSE(SameAtPositions(values, 8, 2));
  EXPECT_TRUE(SameAtPositions(values, 8, 4));
}

TEST(RowPositions, ComparesBitsNotNumbers) {
  const at::Tensor zeros = at::zeros({2});
  zeros.mutable_data_ptr<float>()[1] = -0.0f;
  EXPECT_FALSE(SameAtPositions(zeros, 2, 1));
  EXPECT_TRUE(SameAtPositions(at::full({2, 5}, std::numeric_limits<float>::quiet_NaN()), 2, 1));
}

// Attention moves tokens in front of rows; another axis may be as long as the rows.
TEST(RowPositions, FindsTheAxisOfTheRows) {
  const at::Tensor values = at::ones({4, 4, 2});
  for (int64_t token = 0; token < 4; ++token) values.select(0, token).fill_(static_cast<double>(token));
  EXPECT_TRUE(SameAtPositions(values, 4, 1));
  EXPECT_TRUE(SameAtPositions(values.transpose(0, 1), 4, 1));
  values.mutable_data_ptr<float>()[2] = 7;
  EXPECT_FALSE(SameAtPositions(values, 4, 1));
}

TEST(RowPositions, LeavesOutTensorsWithoutRows) {
  const at::Tensor values = at::zeros({3});
  values.mutable_data_ptr<float>()[0] = 1;
  EXPECT_TRUE(SameAtPositions(values, 4, 1));
  EXPECT_TRUE(SameAtPositions(at::empty({4, 0}), 4, 1));
  EXPECT_TRUE(SameAtPositions(at::zeros({}), 4, 1));
}

}  // namespace
}  // namespace chainfleet
