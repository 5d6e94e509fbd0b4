#include "server/control/solo_turns.h"

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

const ChainId kSuspect{"job-aaaaaa", 0}, kOther{"job-aaaaaa", 1};

TEST(SoloTurns, KeepAWorkerForOneChainAndDisplaceTheRest) {
  SoloTurns turns;
  EXPECT_FALSE(turns.Keeps("w"));
  EXPECT_FALSE(turns.Displaces("w", kOther));
  turns.Plan("w", kSuspect);
  EXPECT_TRUE(turns.Keeps("w"));
  EXPECT_FALSE(turns.Keeps("v"));
  EXPECT_TRUE(turns.Displaces("w", kOther));
  EXPECT_FALSE(turns.Displaces("w", kSuspect));
  EXPECT_FALSE(turns.Displaces("v", kOther));
  EXPECT_TRUE(turns.HasTurn(kSuspect));
  EXPECT_FALSE(turns.HasTurn(kOther));
}

TEST(SoloTurns, BeginWhenTheChainIsLeased) {
  SoloTurns turns;
  turns.Plan("w", kSuspect);
  EXPECT_FALSE(turns.turns().at("w").began);
  turns.Begin("w", kSuspect);
  EXPECT_TRUE(turns.turns().at("w").began);
  EXPECT_EQ(turns.turns().at("w").chain, kSuspect);
  turns.Begin("v", kOther);  // found in the leases after a restart, never planned
  EXPECT_TRUE(turns.HasTurn(kOther));
}

TEST(SoloTurns, LetTheWorkerRestForExactlyTheGivenTime) {
  SoloTurns turns;
  turns.Begin("w", kSuspect);
  turns.End("w", absl::Seconds(100));
  EXPECT_FALSE(turns.Keeps("w"));
  EXPECT_FALSE(turns.HasTurn(kSuspect));
  EXPECT_TRUE(turns.Rests("w", absl::Seconds(99)));
  EXPECT_FALSE(turns.Rests("w", absl::Seconds(100)));
  EXPECT_FALSE(turns.Rests("v", absl::Seconds(0)));
}

TEST(SoloTurns, ForgetOnlyRestsThatAreOver) {
  SoloTurns turns;
  turns.End("w", absl::Seconds(100));
  turns.End("v", absl::Seconds(200));
  turns.ForgetRests(absl::Seconds(100));
  EXPECT_FALSE(turns.Rests("w", absl::Seconds(0)));
  EXPECT_TRUE(turns.Rests("v", absl::Seconds(0)));
}

}  // namespace
}  // namespace chainfleet
