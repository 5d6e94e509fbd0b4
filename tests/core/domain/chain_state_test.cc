#include "core/domain/chain_state.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chainfleet {
namespace {

using enum ChainState;

constexpr ChainState kAll[] = {kPending, kLeased, kSucceeded, kFailed, kDiverged, kCancelled};

TEST(ChainState, AllowsExactlyTheMovesOfTheProtocol) {
  const std::vector<std::pair<ChainState, ChainState>> allowed = {
      {kPending, kLeased},    {kLeased, kPending}, {kLeased, kSucceeded},  {kLeased, kFailed},   {kLeased, kDiverged},
      {kPending, kSucceeded}, {kPending, kFailed}, {kPending, kCancelled}, {kLeased, kCancelled}};
  for (const ChainState from : kAll) {
    for (const ChainState to : kAll) {
      const bool is_allowed = std::find(allowed.begin(), allowed.end(), std::pair(from, to)) != allowed.end();
      EXPECT_EQ(CheckMove(from, to).ok(), is_allowed) << ToString(from) << " -> " << ToString(to);
    }
  }
}

TEST(JobIntent, OnlyTightensExceptForResume) {
  EXPECT_TRUE(CheckIntentMove(JobIntent::kRun, JobIntent::kPause).ok());
  EXPECT_TRUE(CheckIntentMove(JobIntent::kPause, JobIntent::kRun).ok());
  EXPECT_TRUE(CheckIntentMove(JobIntent::kFinish, JobIntent::kDelete).ok());
  EXPECT_FALSE(CheckIntentMove(JobIntent::kFinish, JobIntent::kRun).ok());
  EXPECT_FALSE(CheckIntentMove(JobIntent::kCancel, JobIntent::kFinish).ok());
  EXPECT_FALSE(CheckIntentMove(JobIntent::kDelete, JobIntent::kCancel).ok());
}

TEST(JobState, IsDerivedFromIntentAndChains) {
  const auto derive = [](JobIntent intent, std::vector<ChainState> chains) { return DeriveJobState(intent, chains); };
  EXPECT_EQ(derive(JobIntent::kRun, {kPending, kPending}), JobState::kPending);
  EXPECT_EQ(derive(JobIntent::kRun, {kPending, kLeased}), JobState::kRunning);
  EXPECT_EQ(derive(JobIntent::kRun, {kPending, kSucceeded}), JobState::kRunning);
  EXPECT_EQ(derive(JobIntent::kPause, {kPending, kLeased}), JobState::kRunning) << "not before the lease is back";
  EXPECT_EQ(derive(JobIntent::kPause, {kPending, kSucceeded}), JobState::kPaused);
  EXPECT_EQ(derive(JobIntent::kRun, {kSucceeded, kSucceeded}), JobState::kSucceeded);
  EXPECT_EQ(derive(JobIntent::kFinish, {kSucceeded, kCancelled}), JobState::kSucceededEarly);
  EXPECT_EQ(derive(JobIntent::kRun, {kSucceeded, kDiverged}), JobState::kFailed);
  EXPECT_EQ(derive(JobIntent::kCancel, {kSucceeded, kCancelled}), JobState::kCancelled);
  EXPECT_EQ(derive(JobIntent::kDelete, {kSucceeded}), JobState::kDeleting);
  EXPECT_EQ(DeriveJobState(JobIntent::kRun, {kSucceeded, kDiverged}, /*enough=*/true), JobState::kSucceeded);
  EXPECT_EQ(DeriveJobState(JobIntent::kRun, {kSucceeded, kLeased}, /*enough=*/true), JobState::kRunning);
}

}  // namespace
}  // namespace chainfleet
