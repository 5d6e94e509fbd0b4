#include "server/predict/serving/pinned_call.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Mood = testing::FakeShardPort::Mood;

struct World {
  FakeClock clock;
  ManualExecutor executor{&clock};
  testing::FakeDrawCatalog catalog{&executor, {2}, Classes{3}};
  testing::FakeShardPort port{&executor, testing::ArbitraryProbabilities(3)};
  ShardQueue queue{&clock, &executor, &port};
  absl::Status on_pinned;
  std::vector<absl::StatusOr<int64_t>> answers;
};

// Counts the blocks of five rows.
class CountCall final : public PinnedCall<int64_t> {
 public:
  explicit CountCall(World* world)
      : PinnedCall(&world->executor, &world->catalog, &world->queue, {"job", 0, 0, false}, "while it counted",
                   [world](absl::StatusOr<int64_t> answer) { world->answers.push_back(std::move(answer)); }),
        world_(world) {}

 private:
  absl::Status OnPinned() override {
    CHAINFLEET_RETURN_IF_ERROR(world_->on_pinned);
    FanOut::Plan plan;
    plan.kinds = draws().kinds;
    plan.num_rows = 5;
    plan.set_rows = [](const RowBlock& rows, ShardRequest* request) {
      request->rows = DatasetRows{{}, rows.first_row, rows.num_rows};
    };
    FanOutRows(std::move(plan), {[this](const RowBlock&, const std::vector<PartialPrediction>&) { ++blocks_; },
                                 [this](const absl::Status& status) {
                                   if (!status.ok()) return Finish(status);
                                   Finish(blocks_);
                                   Finish(-1);
                                 }});
    return absl::OkStatus();
  }

  World* const world_;
  int64_t blocks_ = 0;
};

std::function<void()> Begin(World* world) { return std::make_shared<CountCall>(world)->Begin(absl::Seconds(60)); }

TEST(PinnedCall, AnswersOnce) {
  World world;
  world.port.workers = {{"a", Mood::kAnswers}};
  Begin(&world);
  world.executor.RunFor(absl::Seconds(61));
  ASSERT_THAT(world.answers, SizeIs(1));
  EXPECT_EQ(world.answers[0], absl::StatusOr<int64_t>(1));
}

TEST(PinnedCall, EndsWithTheErrorOfTheCatalogOrOfOnPinned) {
  for (const bool by_catalog : {true, false}) {
    World world;
    (by_catalog ? world.catalog.pin_status : world.on_pinned) = absl::NotFoundError("no such job");
    Begin(&world);
    world.executor.RunUntilIdle();
    ASSERT_THAT(world.answers, SizeIs(1));
    EXPECT_EQ(world.answers[0].status(), absl::NotFoundError("no such job"));
  }
}

TEST(PinnedCall, DoesNothingWithDrawsThatComeAfterItsDeadline) {
  World world;
  world.port.workers = {{"a", Mood::kAnswers}};
  world.catalog.answers = false;
  Begin(&world);
  world.executor.RunFor(absl::Seconds(59));
  EXPECT_THAT(world.answers, IsEmpty());
  world.executor.RunFor(absl::Seconds(1));
  ASSERT_THAT(world.answers, SizeIs(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(world.answers[0].status()));
  EXPECT_THAT(std::string(world.answers[0].status().message()), HasSubstr("while it counted"));
  world.catalog.AnswerHeld();
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.port.sent, IsEmpty());
  EXPECT_THAT(world.answers, SizeIs(1));
}

TEST(PinnedCall, CancelledDropsItsShardsAndMayBeCancelledAgain) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  const std::function<void()> cancel = Begin(&world);
  world.executor.RunUntilIdle();
  for (int i = 0; i < 2; ++i) {
    cancel();
    world.executor.RunUntilIdle();
  }
  ASSERT_THAT(world.answers, SizeIs(1));
  EXPECT_TRUE(absl::IsCancelled(world.answers[0].status()));
  EXPECT_THAT(world.port.cancelled, ElementsAre(world.port.sent[0].request.shard_id));
}

TEST(PinnedCall, MayBeCancelledWhenItIsLongGone) {
  World world;
  world.port.workers = {{"a", Mood::kAnswers}};
  const std::function<void()> cancel = Begin(&world);
  world.executor.RunFor(absl::Seconds(61));
  cancel();
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.answers, SizeIs(1));
}

}  // namespace
}  // namespace chainfleet
