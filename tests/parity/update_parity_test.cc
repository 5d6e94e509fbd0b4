// Compares the fused update with the plain reference, and tests the bits that it promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "hwy/targets.h"
#include "tests/support/update_reference.h"
#include "worker/numerics/arena/layout.h"

namespace chainfleet {
namespace {

Layout LayoutOf(const std::vector<int64_t>& sizes) {
  std::vector<ParameterShape> parameters;
  int64_t offset = 0;
  for (const int64_t size : sizes) {
    parameters.push_back({"t" + std::to_string(parameters.size()), {size}, offset, 0});
    offset += size;
  }
  return Layout(parameters);
}

float Value(RngKey key, int64_t row, int64_t p) {
  return UniformFloat(RandomBlock(key, RngStream::kInit, row, static_cast<uint32_t>(p)).word[0]) - 0.5f;
}

RowStep StepOfRow(int64_t row) {
  RowStep step;
  step.key = Fold(RngKey{11}, row);
  step.t = (uint64_t{1} << 33) + row;
  step.step_size = 0.01f + 0.001f * static_cast<float>(row);
  step.noise = 0.1f;
  step.prior_precision = 25;
  step.coupling = 2;
  return step;
}

// Rows of `layout` at Value(), padding at zero, stepped once by the fused update.
struct Rows {
  Rows(const Layout& layout, int64_t count, bool anchored, int64_t first_row = 0)
      : layout(layout),
        theta(count * layout.row_stride()),
        theta_a(anchored ? theta.size() : 0),
        gradient(theta.size()) {
    for (int64_t row = 0; row < count; ++row) {
      steps.push_back(StepOfRow(first_row + row));
      for (const TensorSpan& span : layout.spans()) {
        for (int64_t i = 0; i < span.size; ++i) {
          const int64_t at = row * layout.row_stride() + span.padded + i;
          theta[at] = Value(RngKey{1}, first_row + row, span.first + i);
          gradient[at] = Value(RngKey{2}, first_row + row, span.first + i);
          if (anchored) theta_a[at] = Value(RngKey{3}, first_row + row, span.first + i);
        }
      }
    }
    outcomes.resize(count);
  }
  void Update() {
    UpdateBuffers buffers;
    buffers.spans = layout.spans().data();
    buffers.num_spans = static_cast<int64_t>(layout.spans().size());
    buffers.num_parameters = layout.num_parameters();
    buffers.row_stride = layout.row_stride();
    buffers.rows = static_cast<int64_t>(steps.size());
    buffers.theta = theta.data();
    buffers.theta_a = theta_a.empty() ? nullptr : theta_a.data();
    buffers.gradient = gradient.data();
    LangevinUpdateCpu(buffers, steps.data(), outcomes.data());
  }
  std::vector<double> Flat(const std::vector<float>& values, int64_t row) const {
    std::vector<float> flat(layout.num_parameters());
    layout.Pack(values.data() + row * layout.row_stride(), flat.data());
    return {flat.begin(), flat.end()};
  }
  bool RowEquals(int64_t row, const Rows& other, int64_t other_row) const {
    const size_t bytes = layout.row_stride() * sizeof(float);
    const auto same = [&](const std::vector<float>& a, const std::vector<float>& b) {
      return a.empty() ||
             std::memcmp(a.data() + row * layout.row_stride(), b.data() + other_row * layout.row_stride(), bytes) == 0;
    };
    return same(theta, other.theta) && same(theta_a, other.theta_a);
  }

  const Layout& layout;
  std::vector<float> theta, theta_a, gradient;
  std::vector<RowStep> steps;
  std::vector<RowOutcome> outcomes;
};

// Tails, padding, tensors smaller than a group, across groups and across work chunks.
const std::vector<std::vector<int64_t>> kSizes = {
    {1}, {63}, {64}, {65}, {150, 6, 2400, 16, 5}, {10, 64, 1, 1, 127}, {16384, 3}, {16390, 20000, 10}};

class UpdateParity : public ::testing::TestWithParam<bool> {};

TEST_P(UpdateParity, EqualsTheReferenceToFloatRounding) {
  const bool anchored = GetParam();
  for (const auto& sizes : kSizes) {
    const Layout layout = LayoutOf(sizes);
    Rows rows(layout, 3, anchored);
    const Rows before = rows;
    rows.Update();
    for (int64_t row = 0; row < 3; ++row) {
      std::vector<double> theta = before.Flat(before.theta, row), theta_a;
      double distance2 = 0;
      if (anchored) {
        theta_a = before.Flat(before.theta_a, row);
        for (size_t p = 0; p < theta.size(); ++p) distance2 += (theta[p] - theta_a[p]) * (theta[p] - theta_a[p]);
      }
      testing::ReferenceUpdate(rows.steps[row], theta, anchored ? &theta_a : nullptr,
                               before.Flat(before.gradient, row));
      const std::vector<double> fused = rows.Flat(rows.theta, row);
      for (size_t p = 0; p < theta.size(); ++p) ASSERT_NEAR(fused[p], theta[p], 3e-7) << "row " << row << " p " << p;
      if (anchored) {
        const std::vector<double> fused_a = rows.Flat(rows.theta_a, row);
        for (size_t p = 0; p < theta.size(); ++p) ASSERT_NEAR(fused_a[p], theta_a[p], 3e-7) << "p " << p;
      }
      EXPECT_EQ(rows.outcomes[row].theta_check, 0);
      EXPECT_NEAR(rows.outcomes[row].anchor_distance2, distance2, 1e-5 * distance2 + 1e-12);
    }
  }
}

TEST_P(UpdateParity, LeavesPaddingAtZero) {
  const Layout layout = LayoutOf({10, 64, 1, 1, 127});
  Rows rows(layout, 2, GetParam());
  rows.Update();
  std::vector<bool> is_parameter(layout.row_stride(), false);
  for (const TensorSpan& span : layout.spans()) {
    EXPECT_EQ(span.padded % 16, 0);
    for (int64_t i = 0; i < span.size; ++i) is_parameter[span.padded + i] = true;
  }
  for (int64_t i = 0; i < 2 * layout.row_stride(); ++i) {
    if (is_parameter[i % layout.row_stride()]) continue;
    EXPECT_EQ(rows.theta[i], 0) << i;
    if (GetParam()) {
      EXPECT_EQ(rows.theta_a[i], 0) << i;
    }
  }
}

TEST_P(UpdateParity, GivesARowTheSameBitsAloneAndWithOthers) {
  const Layout layout = LayoutOf({16390, 20000, 10});
  Rows all(layout, 4, GetParam());
  all.Update();
  for (int64_t row = 0; row < 4; ++row) {
    Rows one(layout, 1, GetParam(), row);
    one.Update();
    EXPECT_TRUE(one.RowEquals(0, all, row)) << row;
  }
}

TEST_P(UpdateParity, GivesAParameterTheSameBitsForEveryCutOfTheLayout) {
  const Layout whole = LayoutOf({1000}), cut = LayoutOf({7, 93, 64, 836});
  Rows a(whole, 1, GetParam()), b(cut, 1, GetParam());
  a.Update();
  b.Update();
  EXPECT_EQ(a.Flat(a.theta, 0), b.Flat(b.theta, 0));
}

TEST_P(UpdateParity, ReportsANonFiniteRowAndAffectsNoOther) {
  const Layout layout = LayoutOf({100, 37});
  Rows clean(layout, 3, GetParam()), rows(layout, 3, GetParam());
  rows.gradient[layout.row_stride() + 5] = std::numeric_limits<float>::quiet_NaN();
  clean.Update();
  rows.Update();
  EXPECT_TRUE(std::isnan(rows.outcomes[1].theta_check));
  for (const int64_t row : {0, 2}) {
    EXPECT_EQ(rows.outcomes[row].theta_check, 0);
    EXPECT_TRUE(rows.RowEquals(row, clean, row));
  }
}

TEST_P(UpdateParity, LeavesAnInactiveRowAlone) {
  const Layout layout = LayoutOf({100});
  Rows rows(layout, 2, GetParam());
  const Rows before = rows;
  rows.steps[0].active = false;
  rows.Update();
  EXPECT_TRUE(rows.RowEquals(0, before, 0));
  EXPECT_FALSE(rows.RowEquals(1, before, 1));
}

// With fused multiply-add the width of the vectors changes no bit; without it (SSE) only float rounding differs.
TEST_P(UpdateParity, GivesEveryInstructionSetTheSameValues) {
  const Layout layout = LayoutOf({16390, 6, 130});
  std::vector<Rows> results;
  std::vector<int64_t> targets;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    results.emplace_back(layout, 2, GetParam()).Update();
    targets.push_back(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  for (size_t i = 1; i < results.size(); ++i) {
    for (int64_t row = 0; row < 2; ++row) {
      SCOPED_TRACE(hwy::TargetName(targets[i]));
      if (targets[i] <= HWY_AVX2 && targets[0] <= HWY_AVX2) {
        EXPECT_TRUE(results[i].RowEquals(row, results[0], row));
      }
      const auto a = results[i].Flat(results[i].theta, row), b = results[0].Flat(results[0].theta, row);
      EXPECT_THAT(a, ::testing::Pointwise(::testing::DoubleNear(4e-7), b));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SgldAndEmcmc, UpdateParity, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Anchored" : "Plain"; });

}  // namespace
}  // namespace chainfleet
