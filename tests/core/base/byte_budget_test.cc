#include "core/base/byte_budget.h"

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(ByteBudget, IsSharedUpToItsLastByte) {
  const ByteBudget budget(10);
  ByteShare first(budget), second(budget);
  EXPECT_TRUE(first.Add(6));
  EXPECT_TRUE(second.Add(3));
  EXPECT_TRUE(first.Add(1));
  EXPECT_EQ(budget.held_bytes(), 10);
  EXPECT_FALSE(second.Add(1));
  EXPECT_TRUE(second.Add(0));
}

TEST(ByteBudget, ARefusedAddHoldsNothing) {
  const ByteBudget budget(10);
  ByteShare share(budget);
  EXPECT_FALSE(share.Add(11));
  EXPECT_FALSE(share.Add(INT64_MAX));
  EXPECT_EQ(budget.held_bytes(), 0);
  EXPECT_TRUE(share.Add(10));
  EXPECT_FALSE(share.Add(INT64_MAX));
  EXPECT_EQ(budget.held_bytes(), 10);
}

TEST(ByteBudget, GetsBackWhatAShareHeld) {
  const ByteBudget budget(10);
  {
    ByteShare share(budget);
    EXPECT_TRUE(share.Add(4));
    EXPECT_TRUE(share.Add(6));
  }
  EXPECT_EQ(budget.held_bytes(), 0);
}

TEST(ByteBudget, CopiesAreOneAndSharesOutliveThem) {
  std::optional<ByteBudget> budget(10);
  const ByteBudget copy = *budget;
  const auto share = std::make_unique<ByteShare>(*budget);
  EXPECT_TRUE(share->Add(10));
  EXPECT_EQ(copy.held_bytes(), 10);
  EXPECT_EQ(copy.max_bytes(), 10);
  const auto last = std::make_unique<ByteShare>(ByteBudget(5));
  budget.reset();
  EXPECT_FALSE(share->Add(1));
  EXPECT_TRUE(last->Add(5));
  EXPECT_FALSE(last->Add(1));
}

TEST(ByteBudget, IsNeverExceededByThreads) {
  const ByteBudget budget(1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget] {
      for (int i = 0; i < 10000; ++i) {
        ByteShare share(budget);
        const bool added = share.Add(i % 700);
        EXPECT_TRUE(!added || budget.held_bytes() <= budget.max_bytes());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.held_bytes(), 0);
}

}  // namespace
}  // namespace chainfleet
