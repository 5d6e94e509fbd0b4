#include "server/predict/serving/fan_out.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;
using Mood = testing::FakeShardPort::Mood;

struct World {
  explicit World(const std::map<std::string, Mood>& workers, const std::vector<int64_t>& draws_of_chain = {2, 3, 1, 2})
      : catalog(&executor, draws_of_chain, Classes{3}) {
    port.workers = workers;
  }

  void Begin(int64_t num_rows, bool needs_all = true) {
    FanOut::Plan plan;
    plan.draws = std::make_shared<const PinnedDraws>(catalog.pinned);
    plan.kinds = catalog.pinned.kinds;
    plan.num_rows = num_rows;
    plan.needs_all = needs_all;
    plan.set_rows = [](const RowBlock& rows, ShardRequest* request) {
      request->rows = DatasetRows{{}, rows.first_row, rows.num_rows};
    };
    fan_out.emplace(owner, &strand, &queue, &catalog, std::move(plan),
                    FanOut::Events{[this](const RowBlock& rows, std::vector<PartialPrediction> partials) {
                                     EXPECT_TRUE(ends.empty()) << "a block after the end";
                                     EXPECT_TRUE(blocks.emplace(rows.first_row, rows.num_rows).second);
                                     for (const PartialPrediction& p : partials) sums[rows.first_row].insert(p.chain);
                                   },
                                   [this](const absl::Status& status) { ends.push_back(status); }});
    strand.Schedule([this] { fan_out->Advance(); });
    executor.RunUntilIdle();
  }
  void Stop(const absl::Status& status) {
    strand.Schedule([this, status] { fan_out->Stop(status); });
    executor.RunUntilIdle();
  }

  FakeClock clock;
  ManualExecutor executor{&clock};
  Strand strand{&executor};
  testing::FakeDrawCatalog catalog;
  testing::FakeShardPort port{&executor, testing::ArbitraryProbabilities(3)};
  ShardQueue queue{&clock, &executor, &port};
  std::shared_ptr<int> owner = std::make_shared<int>();
  std::optional<FanOut> fan_out;
  std::map<int64_t, int64_t> blocks;          // first row to number of rows
  std::map<int64_t, std::set<ChainId>> sums;  // chains of each block
  std::vector<absl::Status> ends;
};

TEST(FanOut, CoversEachRowOnceWithEveryChainAndThenEnds) {
  World world({{"a", Mood::kAnswers}, {"b", Mood::kAnswers}});
  const int64_t num_rows = 2 * limits::kMaxShardRows + 7;
  world.Begin(num_rows);
  int64_t next = 0;
  for (const auto& [first, count] : world.blocks) {
    EXPECT_EQ(first, next);
    EXPECT_THAT(world.sums[first], SizeIs(4));
    next = first + count;
  }
  EXPECT_EQ(next, num_rows);
  EXPECT_THAT(world.ends, ElementsAre(absl::OkStatus()));
}

TEST(FanOut, WithoutRowsEndsAtOnce) {
  World world({{"a", Mood::kAnswers}});
  world.Begin(0);
  EXPECT_THAT(world.ends, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(world.port.sent, IsEmpty());
}

TEST(FanOut, KeepsFewBlocksOpenAndStartsMoreAsTheyFinish) {
  World world({{"a", Mood::kHangs}});
  world.Begin(10 * limits::kMaxShardRows);
  EXPECT_THAT(world.port.sent, SizeIs(limits::kRowBlocksInFlight));
  world.port.workers["a"] = Mood::kAnswers;
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.blocks, SizeIs(10));
  EXPECT_THAT(world.ends, ElementsAre(absl::OkStatus()));
}

TEST(FanOut, EndsWithTheFirstErrorAndCancelsTheRestWhenAllAreNeeded) {
  World world({{"a", Mood::kHangs}, {"b", Mood::kRefuses}});
  world.Begin(5);
  ASSERT_THAT(world.ends, SizeIs(1));
  EXPECT_TRUE(absl::IsInvalidArgument(world.ends[0])) << world.ends[0];
  EXPECT_THAT(world.blocks, IsEmpty());
  EXPECT_EQ(world.port.num_open(), 0u);
}

TEST(FanOut, DeliversPartialSumsWhenShardsMayBeMissing) {
  World world({{"a", Mood::kAnswers}, {"b", Mood::kRefuses}});
  world.Begin(5, false);
  ASSERT_THAT(world.ends, SizeIs(1));
  EXPECT_TRUE(absl::IsInvalidArgument(world.ends[0])) << world.ends[0];
  ASSERT_THAT(world.blocks, SizeIs(1));
  EXPECT_THAT(world.sums[0], SizeIs(Lt(4u)));
  EXPECT_FALSE(world.sums[0].empty());
}

TEST(FanOut, StoppedDeliversTheOpenBlocksOnlyIfSomeMayBeMissing) {
  for (const bool needs_all : {true, false}) {
    World world({{"a", Mood::kAnswers}, {"b", Mood::kHangs}});
    world.Begin(5, needs_all);
    EXPECT_THAT(world.ends, IsEmpty());
    world.Stop(absl::DeadlineExceededError("late"));
    EXPECT_THAT(world.ends, ElementsAre(absl::DeadlineExceededError("late")));
    EXPECT_EQ(world.blocks.size(), needs_all ? 0u : 1u);
    EXPECT_EQ(world.sums.empty(), needs_all);
    EXPECT_THAT(world.port.cancelled, SizeIs(1));
    EXPECT_EQ(world.port.num_open(), 0u);
  }
}

TEST(FanOut, EndsOnce) {
  World world({{"a", Mood::kAnswers}});
  world.Begin(5);
  world.Stop(absl::CancelledError("too late"));
  EXPECT_THAT(world.ends, ElementsAre(absl::OkStatus()));
}

TEST(FanOut, TellsTheCatalogOfCorruptObjects) {
  World world({{"a", Mood::kAnswers}});
  world.port.corrupt = {"1/2"};
  world.Begin(5);
  EXPECT_THAT(world.catalog.corrupt, ElementsAre("1/2"));
  EXPECT_THAT(world.ends, ElementsAre(absl::OkStatus()));
}

TEST(FanOut, KeepsItsOwnerAliveUntilItsShardsAreHome) {
  World world({{"a", Mood::kHangs}});
  world.Begin(5);
  const std::weak_ptr<int> watch = world.owner;
  world.owner.reset();
  EXPECT_FALSE(watch.expired());
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_TRUE(watch.expired());
  EXPECT_THAT(world.ends, ElementsAre(absl::OkStatus()));
}

PinnedDraws Pinned(const std::vector<int64_t>& input_shape, int64_t num_classes, int64_t num_draws) {
  auto plan = std::make_shared<PredictPlan>();
  plan->input_shape = input_shape;
  plan->targets = Classes{num_classes};
  return {.plan = plan, .version = 1, .draws_in_version = 0, .chains = {{.num_draws = num_draws}}, .kinds = {}};
}

TEST(RowsPerBlock, IsBoundByForwardPassesOfAWorkerThenByBytes) {
  EXPECT_EQ(RowsPerBlock(Pinned({1}, 2, 1), 1, 1), limits::kMaxShardRows);
  EXPECT_EQ(RowsPerBlock(Pinned({1}, 2, 128), 1, 1), limits::kShardForwardPasses / 128);
  EXPECT_EQ(RowsPerBlock(Pinned({1}, 2, 128), 2, 1), limits::kShardForwardPasses / 256);
  EXPECT_EQ(RowsPerBlock(Pinned({1}, 2, 128), 2, 4), limits::kShardForwardPasses / 64);
  EXPECT_EQ(RowsPerBlock(Pinned({64, 64, 3}, 2, 1), 1, 1), limits::kShardBytes / (4 * 64 * 64 * 3));
  EXPECT_EQ(RowsPerBlock(Pinned({1}, 1000, 1), 1, 1), limits::kShardBytes / (8 * 3001));
}

TEST(RowsPerBlock, IsNeverBelowItsFloorNorUndefinedWithoutWorkersOrDraws) {
  EXPECT_EQ(RowsPerBlock(Pinned({1}, 2, 1'000'000), 2, 1), limits::kMinShardRows);
  EXPECT_EQ(RowsPerBlock(Pinned({1}, 2, 0), 1, 0), limits::kMaxShardRows);
}

}  // namespace
}  // namespace chainfleet
