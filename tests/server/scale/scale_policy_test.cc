#include "server/scale/scale_policy.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using State = ScaledWorker::State;
using testing::ElementsAre;
using testing::IsEmpty;

const ScaleSettings kSettings{
    .min_workers = 0, .max_workers = 8, .chains_per_worker = 4, .idle_after = absl::Minutes(5)};

ScaledWorker Pending(const std::string& job) { return {job, State::kPending, false, absl::ZeroDuration()}; }
ScaledWorker Joined(const std::string& job, absl::Duration idle_for = absl::ZeroDuration()) {
  return {job, State::kRunning, true, idle_for};
}
ScaledWorker Ending(const std::string& job) { return {job, State::kEnding, true, absl::ZeroDuration()}; }

ScaleFacts Waiting(int64_t chains, std::vector<ScaledWorker> workers = {}) {
  ScaleFacts facts;
  facts.waiting = chains;
  facts.waiting_for = kAskAfter;
  facts.workers = std::move(workers);
  return facts;
}
ScaleFacts Calm(std::vector<ScaledWorker> workers) {
  ScaleFacts facts;
  facts.calm_for = absl::Minutes(10);
  facts.workers = std::move(workers);
  return facts;
}

TEST(ScalePolicy, AsksForAsManyWorkersAsTheWaitingChainsFill) {
  EXPECT_EQ(DecideScale(kSettings, Waiting(0)).ask, 0);
  EXPECT_EQ(DecideScale(kSettings, Waiting(1)).ask, 1);
  EXPECT_EQ(DecideScale(kSettings, Waiting(4)).ask, 1);
  EXPECT_EQ(DecideScale(kSettings, Waiting(5)).ask, 2);
}

TEST(ScalePolicy, NeverAsksForMoreThanTheBound) {
  EXPECT_EQ(DecideScale(kSettings, Waiting(4000)), (ScaleDecision{.desired = 8, .ask = 8}));
  EXPECT_EQ(DecideScale(kSettings, Waiting(4000, {Pending("1"), Joined("2")})).ask, 6);
}

TEST(ScalePolicy, CountsAWorkerThatEndsAgainstTheBoundAndNotForTheChains) {
  ScaleSettings settings = kSettings;
  settings.max_workers = 2;
  EXPECT_EQ(DecideScale(settings, Waiting(8, {Ending("1")})), (ScaleDecision{.desired = 2, .ask = 1}));
  EXPECT_EQ(DecideScale(settings, Waiting(8, {Ending("1"), Ending("2")})).ask, 0);
}

TEST(ScalePolicy, AsksForNothingWhileStartingWorkersSuffice) {
  EXPECT_EQ(DecideScale(kSettings, Waiting(8, {Pending("1"), Pending("2")})).ask, 0);
  ScaledWorker starting = Pending("2");
  starting.state = State::kRunning;
  EXPECT_EQ(DecideScale(kSettings, Waiting(8, {Pending("1"), starting})).ask, 0);
  EXPECT_EQ(DecideScale(kSettings, Waiting(9, {Pending("1"), starting})).ask, 1);
}

TEST(ScalePolicy, LetsChainsWaitAMomentBeforeItAsks) {
  ScaleFacts facts = Waiting(4);
  facts.waiting_for = kAskAfter - absl::Milliseconds(1);
  EXPECT_EQ(DecideScale(kSettings, facts), (ScaleDecision{.desired = 1, .ask = 0}));
}

TEST(ScalePolicy, LeavesToWorkersElsewhereWhatTheyCanTake) {
  ScaleFacts facts = Waiting(6);
  facts.other_slots = facts.free_slots = 6;
  EXPECT_EQ(DecideScale(kSettings, facts), ScaleDecision{});
  facts.other_slots = facts.free_slots = 5;
  EXPECT_EQ(DecideScale(kSettings, facts).ask, 1);
  facts.free_slots = 0;  // they are full
  facts.held = 5;
  EXPECT_EQ(DecideScale(kSettings, facts).ask, 2);
}

TEST(ScalePolicy, AsksOnWhenWorkersHaveFewerSlotsThanTheyWereAskedToHave) {
  ScaleFacts facts = Waiting(2, {Joined("1")});
  facts.held = 1;
  EXPECT_EQ(DecideScale(kSettings, facts), (ScaleDecision{.desired = 2, .ask = 1}));
}

TEST(ScalePolicy, DoesNotCountSlotsThatNoChainTakes) {
  ScaleFacts facts = Waiting(2, {Joined("1")});
  facts.held = 1;
  facts.free_slots = 3;
  facts.stuck_for = kStuckAfter - absl::Milliseconds(1);
  EXPECT_EQ(DecideScale(kSettings, facts).ask, 0);
  facts.stuck_for = kStuckAfter;
  EXPECT_EQ(DecideScale(kSettings, facts), (ScaleDecision{.desired = 2, .ask = 1}));
}

TEST(ScalePolicy, KeepsTheFloorWithoutAnyChain) {
  ScaleSettings settings = kSettings;
  settings.min_workers = 2;
  EXPECT_EQ(DecideScale(settings, Calm({})), (ScaleDecision{.desired = 2, .ask = 2}));
  EXPECT_EQ(DecideScale(settings, Calm({Joined("1", absl::Hours(1)), Joined("2", absl::Hours(1))})),
            (ScaleDecision{.desired = 2}));
}

TEST(ScalePolicy, DrainsTheLongestIdleWorkerFirst) {
  ScaleSettings settings = kSettings;
  settings.min_workers = 1;
  const ScaleFacts facts =
      Calm({Joined("1", absl::Minutes(6)), Joined("2", absl::Minutes(9)), Joined("3", absl::Minutes(7))});
  EXPECT_THAT(DecideScale(settings, facts).released, ElementsAre("2", "3"));
}

TEST(ScalePolicy, KeepsAWorkerThatIsIdleForAMoment) {
  const absl::Duration almost = kSettings.idle_after - absl::Milliseconds(1);
  EXPECT_EQ(DecideScale(kSettings, Calm({Joined("1", almost)})), ScaleDecision{});
  EXPECT_THAT(DecideScale(kSettings, Calm({Joined("1", kSettings.idle_after)})).released, ElementsAre("1"));
}

TEST(ScalePolicy, NeverDrainsAWorkerWithChains) {
  ScaleFacts facts = Calm({Joined("1"), Joined("2"), Joined("3", absl::Hours(1))});
  facts.held = 2;  // one each, which one worker could hold
  EXPECT_EQ(DecideScale(kSettings, facts), (ScaleDecision{.desired = 1, .released = {"3"}}));
}

TEST(ScalePolicy, DrainsNoWorkerWhileAChainWaits) {
  ScaleFacts facts = Waiting(1, {Joined("1", absl::Hours(1)), Joined("2", absl::Hours(1))});
  facts.free_slots = 8;
  EXPECT_EQ(DecideScale(kSettings, facts), (ScaleDecision{.desired = 1}));
}

TEST(ScalePolicy, WithdrawsTheLastOfTheQueueWhenNothingHasWaitedForLong) {
  ScaleSettings settings = kSettings;
  settings.min_workers = 1;
  ScaleFacts facts = Calm({Pending("1"), Pending("2"), Pending("3")});
  EXPECT_THAT(DecideScale(settings, facts).withdraw, ElementsAre("3", "2"));
  facts.calm_for = settings.idle_after - absl::Milliseconds(1);
  EXPECT_THAT(DecideScale(settings, facts).withdraw, IsEmpty());
}

TEST(ScalePolicy, ReplacesAWorkerThatEndsWhenItsChainsWait) {
  EXPECT_EQ(DecideScale(kSettings, Waiting(4, {Ending("1")})), (ScaleDecision{.desired = 1, .ask = 1}));
}

}  // namespace
}  // namespace chainfleet
