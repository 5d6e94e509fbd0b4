// Layout, arena and the step-size schedule.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "worker/numerics/arena/theta_arena.h"

namespace chainfleet {
namespace {

std::shared_ptr<const Layout> SmallLayout() {
  return std::make_shared<const Layout>(
      std::vector<ParameterShape>{{"a", {3, 7}, 0, 7}, {"b", {3}, 21, 7}, {"c", {2, 8}, 24, 8}});
}

std::vector<float> Numbers(float first) {
  std::vector<float> values(40);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(Layout, StartsEveryTensorOn64Bytes) {
  const auto layout = SmallLayout();
  EXPECT_EQ(layout->num_parameters(), 40);
  EXPECT_EQ(layout->row_stride(), 32 + 16 + 16);
  ASSERT_EQ(layout->spans().size(), 3u);
  EXPECT_EQ(layout->spans()[1].padded, 32);
  EXPECT_EQ(layout->spans()[2].first, 24);
}

TEST(ThetaArena, KeepsRowsWhenRowsComeAndGo) {
  ThetaArena arena(SmallLayout(), Device{});
  for (int r = 0; r < 7; ++r) {
    arena.AddRow();
    EXPECT_EQ(arena.ReadRow(r), std::vector<float>(40, 0.0f));
    arena.WriteRow(r, Numbers(static_cast<float>(100 * r)));
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.row(1)) % 64, 0u);
  arena.RemoveRow(2);
  ASSERT_EQ(arena.rows(), 6);
  EXPECT_EQ(arena.ReadRow(2), Numbers(600));
  EXPECT_EQ(arena.ReadRow(5), Numbers(500));
  arena.AddRow();
  EXPECT_EQ(arena.ReadRow(6), std::vector<float>(40, 0.0f));
}

TEST(ThetaArena, CloneSharesNothing) {
  ThetaArena arena(SmallLayout(), Device{});
  arena.AddRow();
  arena.WriteRow(0, Numbers(1));
  ThetaArena copy = arena.Clone();
  copy.WriteRow(0, Numbers(2));
  EXPECT_EQ(arena.ReadRow(0), Numbers(1));
  arena.CopyRow(0, copy);
  EXPECT_EQ(arena.ReadRow(0), Numbers(2));
}

}  // namespace
}  // namespace chainfleet
