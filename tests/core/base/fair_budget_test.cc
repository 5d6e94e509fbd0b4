#include "core/base/fair_budget.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace chainfleet {
namespace {

TEST(FairBudget, AHolderHoldsNoMoreThanItLeavesFree) {
  const FairBudget budget(100);
  BudgetShare first(budget, "a"), second(budget, "a"), other(budget, "b"), third(budget, "c");
  EXPECT_TRUE(first.Add(30));
  EXPECT_FALSE(second.Add(21)) << "the shares of a holder count together";
  EXPECT_TRUE(second.Add(20));
  EXPECT_FALSE(first.Add(1));
  EXPECT_TRUE(other.Add(25)) << "half of the rest";
  EXPECT_FALSE(other.Add(1));
  EXPECT_TRUE(third.Add(12));
  EXPECT_TRUE(first.Add(0)) << "nothing needs no room";
  EXPECT_EQ(budget.held_bytes(), 87);
  EXPECT_EQ(budget.held_bytes("a"), 50);
  EXPECT_EQ(budget.held_bytes("d"), 0);
}

TEST(FairBudget, WithoutANameTakesAllThatIsFree) {
  const FairBudget budget(100);
  BudgetShare named(budget, "a"), nameless(budget, "");
  EXPECT_TRUE(named.Add(10));
  EXPECT_FALSE(nameless.Add(91));
  EXPECT_TRUE(nameless.Add(90));
  EXPECT_FALSE(named.Add(1));
}

TEST(FairBudget, GetsBackWhatAShareHeldAndIsOutlivedByIt) {
  auto budget = std::make_unique<const FairBudget>(100);
  auto share = std::make_unique<BudgetShare>(*budget, "a");
  EXPECT_TRUE(share->Add(20));
  EXPECT_TRUE(share->Add(30));
  share = std::make_unique<BudgetShare>(*budget, "a");
  budget.reset();
  EXPECT_TRUE(share->Add(50));
  EXPECT_FALSE(share->Add(1));
}

TEST(FairBudget, ReportsEachRefusal) {
  int refused = 0;
  BudgetShare share(FairBudget(100, [&] { ++refused; }), "a");
  EXPECT_TRUE(share.Add(50));
  EXPECT_FALSE(share.Add(1));
  EXPECT_FALSE(share.Add(INT64_MAX));
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace chainfleet
