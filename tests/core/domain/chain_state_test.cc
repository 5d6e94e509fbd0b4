#include "core/domain/chain_state.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chainfleet {
namespace {

using enum ChainState;

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
  EXPECT_EQ(derive(JobIntent::kRun, {kCancelled, kPending}), JobState::kPending) << "only chain 1 is sampled";
  EXPECT_EQ(derive(JobIntent::kRun, {kCancelled, kLeased}), JobState::kRunning);
  EXPECT_EQ(derive(JobIntent::kRun, {kCancelled, kSucceeded}), JobState::kSucceeded);
  EXPECT_EQ(derive(JobIntent::kPause, {kCancelled, kSucceeded}), JobState::kSucceeded);
  EXPECT_EQ(derive(JobIntent::kRun, {kCancelled, kDiverged}), JobState::kFailed);
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
