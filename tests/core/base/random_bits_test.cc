#include "core/base/random_bits.h"

#include <gtest/gtest.h>

#include <set>

namespace chainfleet {
namespace {

TEST(RandomBits, FillBothHalvesAndNeverRepeat) {
  std::set<uint64_t> seen;
  std::set<uint32_t> high, low;
  for (int i = 0; i < 16; ++i) {
    const uint64_t bits = RandomBits();
    seen.insert(bits);
    high.insert(static_cast<uint32_t>(bits >> 32));
    low.insert(static_cast<uint32_t>(bits));
  }
  EXPECT_EQ(seen.size(), 16u);
  EXPECT_GT(high.size(), 14u);
  EXPECT_GT(low.size(), 14u);
}

}  // namespace
}  // namespace chainfleet
