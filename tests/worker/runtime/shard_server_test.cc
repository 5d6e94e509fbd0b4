#include "worker/runtime/shard_server.h"

#include "tests/worker/runtime/shard_server_fixture.h"

namespace chainfleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ShardServerTest, SumsOverTheDrawsOfEachChainAndKind) {
  Submit(Request(5, {Chain(0), Chain(3)}));
  RunAll();
  ASSERT_THAT(results_, SizeIs(1));
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  const ShardResult& result = *results_[0];
  EXPECT_EQ(result.shard_id, 5u);
  EXPECT_THAT(result.corrupt_objects, IsEmpty());
  ASSERT_THAT(result.partials, SizeIs(4));
  EXPECT_EQ(result.partials[0].chain.index, 0);
  EXPECT_EQ(result.partials[2].chain.index, 3);
  EXPECT_EQ(result.partials[0].numbers().sum_wm[0], 1 + 2 + 3 + 4);
  EXPECT_EQ(result.partials[1].numbers().sum_wm[0], 100);
  EXPECT_EQ(result.partials[1].kind, DrawKind::kThetaA);
}

TEST_F(ShardServerTest, TellsWhatTheTimeOfAShardWasSpentOnAndWhatTheCacheSaved) {
  Submit(Request(1, {Chain(0)}));
  clock_.Advance(absl::Milliseconds(50));
  executor_.RunUntilIdle();
  clock_.Advance(absl::Milliseconds(30));  // a step of the chains
  RunAll();
  ASSERT_THAT(observer_.shards, SizeIs(1));
  EXPECT_EQ(observer_.shards[0].load, absl::Milliseconds(50));
  EXPECT_EQ(observer_.shards[0].wait, absl::Milliseconds(30));
  EXPECT_EQ(observer_.shards[0].compute, absl::Milliseconds(200)) << "two kinds";
  EXPECT_EQ(draws_.counts().misses, 2);
  EXPECT_EQ(draws_.counts().hits, 0);
  Submit(Request(2, {Chain(0), Chain(1)}));
  RunAll();
  EXPECT_EQ(draws_.counts().misses, 4);
  EXPECT_EQ(draws_.counts().hits, 2);
}

TEST_F(ShardServerTest, UsesOnlyTheDrawsOfTheVersion) {
  Submit(Request(1, {Chain(0, 0, 3), Chain(1, 1, 2), Chain(2, 3, 1)}));
  RunAll();
  ASSERT_TRUE(results_[0].ok());
  ASSERT_THAT(results_[0]->partials, SizeIs(6));
  EXPECT_EQ(results_[0]->partials[0].numbers().sum_wm[0], 1 + 2 + 3);
  EXPECT_EQ(results_[0]->partials[2].numbers().sum_wm[0], 2 + 3);
  EXPECT_EQ(results_[0]->partials[4].numbers().sum_wm[0], 4);
}

TEST_F(ShardServerTest, AveragesEveryKthDrawBackFromTheNewestAndFetchesOnlyItsSegments) {
  ChainDraws third = Chain(0), newest = Chain(1, 0, 4), within = Chain(2, 0, 3);
  third.every = 3;
  newest.every = 4;
  within.every = 2;
  server_.blobs.erase(newest.segments[0].object.name);  // holds none of them
  Submit(Request(1, {third, newest, within}));
  RunAll();
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  ASSERT_THAT(results_[0]->partials, SizeIs(6));
  EXPECT_EQ(results_[0]->partials[0].numbers().sum_wm[0], 1 + 4);
  EXPECT_EQ(results_[0]->partials[2].numbers().sum_wm[0], 4);
  EXPECT_EQ(results_[0]->partials[4].numbers().sum_wm[0], 1 + 3);
  EXPECT_THAT(results_[0]->corrupt_objects, IsEmpty()) << "what is not needed is not fetched";
}

TEST_F(ShardServerTest, SumsSeveralEntriesOfOneChainApartInTheirOrder) {
  Submit(Request(1, {Chain(0, 3, 1), Chain(0, 1, 2), Chain(0, 0, 1)}));  // the newest first
  RunAll();
  ASSERT_THAT(results_, SizeIs(1));
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  std::vector<double> sums;
  for (const PartialPrediction& partial : results_[0]->partials) sums.push_back(partial.numbers().sum_wm[0]);
  EXPECT_THAT(sums, ElementsAre(4, 40, 2 + 3, 20 + 30, 1, 10));
}

TEST_F(ShardServerTest, NamesDrawsByTheirObjectsHoweverTheyAreChosen) {
  FakePredictor::ids_asked.clear();
  Submit(Request(1, {Chain(0, 1, 3), Chain(1)}));
  server_.blobs.erase(Chain(1).segments[0].object.name);
  RunAll();
  const auto id = [&](int32_t chain, size_t segment, int64_t index) {
    return DrawId{Chain(chain).segments[segment].object.sha256, index};
  };
  ASSERT_THAT(FakePredictor::ids_asked, SizeIs(4));
  EXPECT_THAT(FakePredictor::ids_asked[0], ElementsAre(id(0, 0, 1), id(0, 1, 0), id(0, 1, 1)));
  EXPECT_EQ(FakePredictor::ids_asked[1], FakePredictor::ids_asked[0]) << "of the other kind";
  EXPECT_THAT(FakePredictor::ids_asked[2], ElementsAre(id(1, 1, 0), id(1, 1, 1)));
}

TEST_F(ShardServerTest, KeepsWhatWasMadeOfItsRowsForEachPartOfAShardAndForNoOther) {
  FakePredictor::rows_made.clear();
  Submit(Request(1, {Chain(0)}));
  Submit(Request(2, {Chain(0)}));
  RunAll();
  const auto& made = FakePredictor::rows_made;
  ASSERT_THAT(made, SizeIs(4)) << "two kinds of two shards";
  const auto same = [&](size_t i, size_t j) {
    return !made[i].owner_before(made[j]) && !made[j].owner_before(made[i]);
  };
  EXPECT_TRUE(same(0, 1));
  EXPECT_FALSE(same(1, 2));
  EXPECT_TRUE(same(2, 3));
  for (const auto& rows : made) EXPECT_TRUE(rows.expired()) << "a shard that ended keeps none";
}

TEST_F(ShardServerTest, AsksForMembersIfTheShardDoes) {
  FakePredictor::members_asked = false;
  Submit(Request(1, {Chain(0)}));
  RunAll();
  EXPECT_FALSE(FakePredictor::members_asked);
  ShardRequest request = Request(2, {Chain(0)});
  request.members = true;
  Submit(std::move(request));
  RunAll();
  EXPECT_TRUE(FakePredictor::members_asked);
}

TEST_F(ShardServerTest, AddsGradientsIfTheShardAsksForThem) {
  ShardRequest request = Request(1, {Chain(0)});
  request.gradients = true;
  Submit(std::move(request));
  Submit(Request(2, {Chain(0)}));
  RunAll();
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  EXPECT_FALSE(results_[0]->partials[0].sum_wg.empty());
  EXPECT_TRUE(results_[1]->partials[0].sum_wg.empty());
}

TEST_F(ShardServerTest, LeavesCorruptObjectsOutAndNamesThem) {
  const ChainDraws chain = Chain(0);
  const std::string& name = chain.segments[0].object.name;
  server_.blobs[name].back() ^= 1;
  Submit(Request(1, {chain}));
  RunAll();
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  EXPECT_THAT(results_[0]->corrupt_objects, ElementsAre(name));
  EXPECT_EQ(results_[0]->partials[0].num_draws, 2);
  EXPECT_EQ(results_[0]->partials[0].numbers().sum_wm[0], 3 + 4);
}

TEST_F(ShardServerTest, LeavesMissingObjectsOutAndNamesThem) {
  const ChainDraws chain = Chain(0);
  const std::string& name = chain.segments[0].object.name;
  server_.blobs.erase(name);
  Submit(Request(1, {chain}));
  RunAll();
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  EXPECT_THAT(results_[0]->corrupt_objects, ElementsAre(name));
  EXPECT_EQ(results_[0]->partials[0].num_draws, 2);
}

TEST_F(ShardServerTest, ReadsDrawsFromItsCacheTheSecondTime) {
  const ChainDraws chain = Chain(0);
  Submit(Request(1, {chain}));
  RunAll();
  server_.blobs.clear();
  Submit(Request(2, {chain}));
  RunAll();
  ASSERT_THAT(results_, SizeIs(2));
  EXPECT_TRUE(results_[1].ok()) << results_[1].status();
}

TEST_F(ShardServerTest, DrawsThatFitIntoTheCacheAreFetchedOnceAndOthersAnewEachTime) {
  const ChainDraws chain = Chain(0);
  const int64_t bytes = chain.segments[0].object.size_bytes + chain.segments[1].object.size_bytes;
  for (const int64_t capacity : {bytes, bytes - 1, int64_t{0}}) {
    DrawCache cache(&fetcher_, &executor_, capacity);
    for (int round = 0; round < 3; ++round) {
      for (const Segment& segment : chain.segments) {
        cache.Get(segment, [](const auto& draws) { EXPECT_TRUE(draws.ok()) << draws.status(); });
        executor_.RunUntilIdle();
      }
    }
    const bool fits = capacity == bytes;
    EXPECT_EQ(cache.counts().misses, fits ? 2 : 6) << capacity;
    EXPECT_EQ(cache.counts().hits, fits ? 4 : 0) << capacity;
    EXPECT_LE(cache.held_bytes(), capacity);
    EXPECT_EQ(cache.held_bytes() > 0, capacity > 0) << "what still fits is kept";
  }
}

TEST_F(ShardServerTest, RefusesMoreThanItsQueueHolds) {
  for (uint64_t id = 0; id <= limits::kMaxQueuedShards; ++id) Submit(Request(id, {}));
  executor_.RunUntilIdle();
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(absl::IsResourceExhausted(results_[0].status()));
}

TEST_F(ShardServerTest, ChainsAndKindsShareAPassUntilTheyFillIt) {
  Submit(Request(1, {Chain(0), Chain(3), Chain(4)}, ShardServer::kUnitPasses / 8));
  executor_.RunUntilIdle();
  ASSERT_TRUE(shards_.ServeOne());
  executor_.RunUntilIdle();
  EXPECT_THAT(results_, IsEmpty()) << "two kinds of four draws over an eighth each fill a unit";
  RunAll();
  ASSERT_THAT(results_, SizeIs(1));
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  EXPECT_EQ(observer_.shard_units, 3);
  ASSERT_THAT(results_[0]->partials, SizeIs(6));
  EXPECT_EQ(results_[0]->partials[3].chain.index, 3);
  EXPECT_EQ(results_[0]->partials[3].numbers().sum_wm[0], 100);
}

TEST_F(ShardServerTest, ACancelledShardEndsAfterTheUnitItIsAt) {
  Submit(Request(1, {Chain(0), Chain(1)}));
  executor_.RunUntilIdle();
  ASSERT_TRUE(shards_.ServeOne());
  shards_.Cancel(1);
  EXPECT_FALSE(shards_.ServeOne());
  executor_.RunUntilIdle();
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(absl::IsCancelled(results_[0].status()));
  EXPECT_EQ(observer_.shard_units, 1);
}

TEST_F(ShardServerTest, ACancelWhileLoadingFreesItsPlace) {
  Submit(Request(1, {Chain(0)}));
  shards_.CancelAll();
  RunAll();
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(absl::IsCancelled(results_[0].status()));
  Submit(Request(1, {Chain(0)}));
  RunAll();
  ASSERT_THAT(results_, SizeIs(2));
  EXPECT_TRUE(results_[1].ok());
}

TEST_F(ShardServerTest, AFetchThatIsCutOffIsNoCancelOfTheShard) {
  server_.get_failures = {absl::CancelledError("by a proxy")};
  Submit(Request(1, {Chain(0)}));
  RunAll();
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(absl::IsUnavailable(results_[0].status())) << results_[0].status();
  EXPECT_THAT(std::string(results_[0].status().message()), ::testing::HasSubstr("by a proxy"));
}

TEST_F(ShardServerTest, AShardWhoseObjectsAreOutOfReachFailsWithTheLoadsThatRunAtOnce) {
  constexpr size_t kLoadsAtOnce = 4, kSegments = 20;
  server_.get_failures.assign(kSegments * limits::kUploadAttempts, absl::UnavailableError("no way there"));
  std::vector<ChainDraws> chains;
  for (int32_t i = 0; i < static_cast<int32_t>(kSegments) / 2; ++i) chains.push_back(Chain(i));
  Submit(Request(1, chains));
  executor_.RunFor(limits::kUploadAttempts * limits::kRetryMax);
  ASSERT_THAT(results_, SizeIs(1)) << "so that another worker can be asked";
  EXPECT_TRUE(absl::IsUnavailable(results_[0].status())) << results_[0].status();
  executor_.RunFor(absl::Hours(1));
  EXPECT_THAT(server_.get_failures, SizeIs((kSegments - kLoadsAtOnce) * limits::kUploadAttempts));
}

ShardRequest OfRows(ShardRequest request, int64_t rows = 0) {
  request.inputs = nullptr;
  request.rows = DatasetRows{{.name = "empty"}, 0, rows};
  return request;
}

TEST_F(ShardServerTest, CorruptedRowsAreAskedOfThePredictor) {
  ShardRequest request = OfRows(Request(1, {Chain(0)}));
  request.corruption = Corruption{"fog", 4, 0};
  Submit(request);
  Submit(OfRows(Request(2, {Chain(0)})));
  RunAll();
  ASSERT_THAT(results_, SizeIs(2));
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  ASSERT_THAT(results_[0]->partials, SizeIs(2));
  EXPECT_EQ(results_[0]->partials[0].numbers().sum_wm[0], 4);
  EXPECT_EQ(results_[1]->partials[0].numbers().sum_wm[0], 0);
}

TEST_F(ShardServerTest, FlatnessIsOfTheNewestDrawOfEachChain) {
  ShardRequest request = OfRows(Request(1, {Chain(0, 0, 4), Chain(5, 0, 3)}));
  request.flatness = FlatnessPlan();
  Submit(request);
  RunAll();
  ASSERT_THAT(results_, SizeIs(1));
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  EXPECT_THAT(results_[0]->partials, IsEmpty());
  const std::vector<Flatness>& flatness = results_[0]->flatness;
  ASSERT_THAT(flatness, SizeIs(2));
  EXPECT_EQ(flatness[0].chain.index, 0);
  EXPECT_EQ(flatness[0].fisher_trace, 4);
  EXPECT_THAT(flatness[0].anchor_line, ElementsAre(40));
  EXPECT_EQ(flatness[1].chain.index, 5);
  EXPECT_EQ(flatness[1].fisher_trace, 3);
  EXPECT_EQ(observer_.shard_units, 6);
}

TEST_F(ShardServerTest, AChainWhoseDrawsAreAllCorruptHasNoFlatness) {
  ChainDraws lost = Chain(0);
  for (const Segment& segment : lost.segments) server_.blobs.erase(segment.object.name);
  ShardRequest request = OfRows(Request(1, {lost, Chain(1)}));
  request.flatness = FlatnessPlan();
  Submit(request);
  RunAll();
  ASSERT_TRUE(results_[0].ok()) << results_[0].status();
  ASSERT_THAT(results_[0]->flatness, SizeIs(1));
  EXPECT_EQ(results_[0]->flatness[0].chain.index, 1);
  EXPECT_THAT(results_[0]->corrupt_objects, SizeIs(2));
}

TEST_F(ShardServerTest, APredictionNeedNotWaitForAllOfAFlatness) {
  ShardRequest request = OfRows(Request(1, {Chain(0), Chain(1)}));
  request.flatness = FlatnessPlan();
  Submit(request);
  executor_.RunUntilIdle();
  Submit(Request(2, {Chain(2)}));
  executor_.RunUntilIdle();
  for (int unit = 0; unit < 3; ++unit) ASSERT_TRUE(shards_.ServeOne());  // a part, then both kinds of the prediction
  executor_.RunUntilIdle();
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_EQ(results_[0]->shard_id, 2u);
  RunAll();
  ASSERT_THAT(results_, SizeIs(2));
  EXPECT_THAT(results_[1]->flatness, SizeIs(2));
}

TEST_F(ShardServerTest, APredictionNeedNotWaitForMoreThanAPartOfAnEvaluation) {
  Submit(OfRows(Request(1, {Chain(0), Chain(1)}), ShardServer::kUnitPasses));
  Submit(OfRows(Request(2, {Chain(0), Chain(1)}), ShardServer::kUnitPasses));
  executor_.RunUntilIdle();
  absl::Duration began = clock_.Monotonic();
  EXPECT_EQ(shards_.ServeOne(), ShardServer::Kind::kEvaluation);
  EXPECT_EQ(clock_.Monotonic() - began, ShardServer::kPartTime);
  Submit(Request(3, {Chain(2)}));
  Submit(Request(4, {Chain(3)}));
  executor_.RunUntilIdle();
  began = clock_.Monotonic();
  EXPECT_EQ(shards_.ServeOne(), ShardServer::Kind::kEvaluation);
  EXPECT_EQ(clock_.Monotonic() - began, ShardServer::kLeastPartTime);
  for (int part = 0; part < 4; ++part) EXPECT_EQ(shards_.ServeOne(), ShardServer::Kind::kPrediction);
  EXPECT_THAT(Served(), ElementsAre(3u, 4u));
  while (Served().size() < 3) ASSERT_EQ(shards_.ServeOne(), ShardServer::Kind::kEvaluation);
  EXPECT_THAT(Served(), ElementsAre(3u, 4u, 1u)) << "evaluations are served one after the other";
  RunAll();
  EXPECT_THAT(Served(), ElementsAre(3u, 4u, 1u, 2u));
}

TEST_F(ShardServerTest, AnEvaluationGetsAPartBetweenPredictionsHoweverManyThereAre) {
  Submit(OfRows(Request(1, {Chain(0), Chain(1)}), ShardServer::kUnitPasses));
  uint64_t id = 2;
  const auto parts = 4 * SlowRun::kDraws * absl::Milliseconds(1) / ShardServer::kLeastPartTime;
  for (int part = 0; part < parts; ++part) {  // the evaluation's parts, before each prediction
    Submit(Request(id++, {Chain(2)}));
    executor_.RunUntilIdle();
    for (int unit = 0; unit < 3; ++unit) ASSERT_TRUE(shards_.ServeOne());
  }
  EXPECT_THAT(Served(), Contains(1u));
}

TEST_F(ShardServerTest, AnotherTenantsFewRowsOvertakeManyThatRun) {
  Submit(Request(1, {Chain(0), Chain(1)}, ShardServer::kUnitPasses, "loud"));
  executor_.RunUntilIdle();
  Submit(Request(2, {Chain(0)}, ShardServer::kUnitPasses, "loud"));
  executor_.RunUntilIdle();
  SlowRun::after_draw = [this] {
    Submit(Request(3, {Chain(2)}, 1, "quiet"));
    executor_.RunUntilIdle();
  };
  const absl::Duration began = clock_.Monotonic();
  EXPECT_TRUE(shards_.ServeOne());
  EXPECT_EQ(clock_.Monotonic() - began, absl::Milliseconds(25)) << "pauses after the draw it is at";
  EXPECT_TRUE(shards_.ServeOne());
  EXPECT_THAT(Served(), ElementsAre(3u));
  RunAll();
  EXPECT_THAT(Served(), ElementsAre(3u, 1u, 2u));
  EXPECT_THAT(results_[1]->partials, SizeIs(4)) << "the paused part is not lost";
}

TEST_F(ShardServerTest, ATenantsOwnFewRowsWaitForItsManyThatRun) {
  Submit(Request(1, {Chain(0)}, ShardServer::kUnitPasses, "loud"));
  executor_.RunUntilIdle();
  SlowRun::after_draw = [this] {
    Submit(Request(2, {Chain(2)}, 1, "loud"));
    executor_.RunUntilIdle();
  };
  RunAll();
  EXPECT_THAT(Served(), ElementsAre(1u, 2u));
}

TEST_F(ShardServerTest, ATenantDoesNotPayForShardsThatWereCancelledBeforeTheyBegan) {
  Submit(Request(1, {Chain(0)}, ShardServer::kUnitPasses, "loud"));
  executor_.RunUntilIdle();
  for (uint64_t id = 2; id < 9; ++id) {
    Submit(Request(id, {Chain(2)}, ShardServer::kUnitPasses, "late"));
    executor_.RunUntilIdle();
    shards_.Cancel(id);
  }
  Submit(Request(9, {Chain(2)}, 1, "late"));
  RunAll();
  ASSERT_THAT(results_, SizeIs(9));
  EXPECT_EQ(results_[7]->shard_id, 9u) << "before the loud one, which has more rows";
}

TEST_F(ShardServerTest, ATenantIsOvertakenByAsManyRowsAsItHas) {
  Submit(Request(1, {Chain(0)}, ShardServer::kUnitPasses, "loud"));
  executor_.RunUntilIdle();
  SlowRun::after_draw = [this] {
    for (uint64_t id = 2; id < 11; ++id) Submit(Request(id, {Chain(2)}, ShardServer::kUnitPasses / 8, "steady"));
    executor_.RunUntilIdle();
  };
  RunAll();
  EXPECT_THAT(Served(), ElementsAre(2u, 3u, 4u, 5u, 6u, 7u, 8u, 1u, 9u, 10u));
}

TEST_F(ShardServerTest, ACancelledFlatnessEndsAfterThePartItIsAt) {
  ShardRequest request = OfRows(Request(1, {Chain(0)}));
  request.flatness = FlatnessPlan();
  Submit(request);
  executor_.RunUntilIdle();
  ASSERT_TRUE(shards_.ServeOne());
  shards_.Cancel(1);
  EXPECT_FALSE(shards_.ServeOne());
  executor_.RunUntilIdle();
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_TRUE(absl::IsCancelled(results_[0].status()));
}

TEST_F(ShardServerTest, RefusesWhatDoesNotGoTogether) {
  ShardRequest inputs_corrupted = Request(1, {Chain(0)});
  inputs_corrupted.corruption = Corruption{"fog", 1, 0};
  ShardRequest flat_inputs = Request(2, {Chain(0)});
  flat_inputs.flatness = FlatnessPlan();
  ShardRequest flat_corrupted = OfRows(Request(3, {Chain(0)}));
  flat_corrupted.flatness = FlatnessPlan();
  flat_corrupted.corruption = Corruption{"fog", 1, 0};
  ShardRequest flat_members = OfRows(Request(4, {Chain(0)}));
  flat_members.flatness = FlatnessPlan();
  flat_members.members = true;
  ShardRequest bad_plan = OfRows(Request(5, {Chain(0)}));
  bad_plan.flatness = FlatnessPlan{.radius = 0};
  for (const ShardRequest& request : {inputs_corrupted, flat_inputs, flat_corrupted, flat_members, bad_plan}) {
    Submit(request);
    RunAll();
    EXPECT_TRUE(absl::IsInvalidArgument(results_.back().status())) << request.shard_id;
  }
  EXPECT_THAT(results_, SizeIs(5));
  EXPECT_FALSE(shards_.ready());
}

}  // namespace
}  // namespace chainfleet
