#include "server/control/preemption.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RunningChain Low(int32_t index, const std::string& worker, int64_t bytes = 10) {
  return {{"low", index}, worker, Priority::kLow, bytes};
}
WaitingChains High(int32_t count, int64_t bytes = 10) { return {Priority::kHigh, count, bytes}; }

TEST(Preemption, AsManyYieldAsWaitInOrder) {
  const std::vector<RunningChain> running{Low(3, "w2"), Low(2, "w1"), Low(1, "w2"), Low(0, "w1")};
  const std::vector<FreeSlots> full{{"w1", 0, "a"}, {"w2", 0, "b"}};
  EXPECT_THAT(ChooseYielding({High(3)}, running, full),
              ElementsAre(ChainId{"low", 3}, ChainId{"low", 2}, ChainId{"low", 1}));
  EXPECT_EQ(ChooseYielding({High(9)}, running, full).size(), 4u);
  EXPECT_THAT(ChooseYielding({}, running, full), IsEmpty());
}

TEST(Preemption, NoChainYieldsForAChainThatFindsAPlace) {
  const std::vector<FreeSlots> free{{"w1", 1, "a", std::nullopt, 1}};
  EXPECT_THAT(ChooseYielding({High(1)}, {Low(0, "w1")}, free), IsEmpty());
  EXPECT_EQ(ChooseYielding({High(2)}, {Low(0, "w1")}, free).size(), 1u);
}

TEST(Preemption, NoChainYieldsOnAWorkerThatDoesNotTakeTheWaitingOne) {
  std::vector<FreeSlots> fleet{{"w1", 0, "a"}, {"w2", 1, "b"}};
  for (FreeSlots& worker : fleet) worker.admission = {"token", "vision"};
  WaitingChains waiting = High(1);
  waiting.tenant = "speech";
  EXPECT_THAT(ChooseYielding({waiting}, {Low(0, "w1")}, fleet), IsEmpty());
  fleet.push_back({"w3", 0, "c"});
  EXPECT_THAT(ChooseYielding({waiting}, {Low(0, "w1"), Low(1, "w3")}, fleet), ElementsAre(ChainId{"low", 1}));
}

TEST(Preemption, OnlyLowerTiersYield) {
  const std::vector<RunningChain> running{Low(0, "w1"), {{"normal", 0}, "w1", Priority::kNormal, 10}};
  const std::vector<FreeSlots> full{{"w1", 0, "a"}};
  EXPECT_THAT(ChooseYielding({{Priority::kNormal, 2, 10}}, running, full), ElementsAre(ChainId{"low", 0}));
  EXPECT_THAT(ChooseYielding({High(1), {Priority::kNormal, 1, 10}}, running, full), ElementsAre(ChainId{"low", 0}));
  EXPECT_EQ(ChooseYielding({High(2)}, running, full).size(), 2u);
}

TEST(Preemption, ForMemoryEnoughChainsOfOneWorkerYield) {
  const std::vector<RunningChain> running{Low(3, "w2"), Low(2, "w1"), Low(1, "w1"), Low(0, "w1")};
  const std::vector<FreeSlots> little{{"w1", 5, "a", 5, 4}, {"w2", 5, "b", 0, 2}};
  EXPECT_THAT(ChooseYielding({High(1, 25)}, running, little), ElementsAre(ChainId{"low", 2}, ChainId{"low", 1}))
      << "all that may leave w2 do not make room there";
}

TEST(Preemption, NoChainYieldsInVain) {
  const std::vector<RunningChain> running{Low(1, "w1"), Low(0, "w1")};
  EXPECT_THAT(ChooseYielding({High(1, 1000)}, running, {{"w1", 0, "a", 0, 3}}), IsEmpty())
      << "a chain of its own tier keeps the memory";
  EXPECT_EQ(ChooseYielding({High(1, 1000)}, running, {{"w1", 0, "a", 0, 2}}).size(), 2u)
      << "an empty worker tries what fits nowhere";
  EXPECT_THAT(ChooseYielding({High(1, 1000), High(1, 5)}, running, {{"w1", 0, "a", 0, 3}}),
              ElementsAre(ChainId{"low", 1}))
      << "a smaller one has its turn";
}

}  // namespace
}  // namespace chainfleet
