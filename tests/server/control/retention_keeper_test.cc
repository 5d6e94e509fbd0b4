#include "server/control/retention_keeper.h"

#include "server/control/garbage_collector.h"
#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr absl::Duration kLongestCall = absl::Minutes(30);

SegmentRecord RecordOf(int64_t first_index, int64_t draws, absl::Time committed_at) {
  SegmentRecord record;
  record.segment.first_index = first_index;
  record.segment.steps.resize(static_cast<size_t>(draws));
  record.committed_at = committed_at;
  return record;
}

TEST(ChooseExpired, TakesSegmentsOfWhichEveryDrawIsBeyondThoseToKeep) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  const std::vector<SegmentRecord> records{RecordOf(0, 3, now), RecordOf(3, 2, now), RecordOf(5, 1, now)};
  const auto choose = [&](int64_t keep_last) { return ChooseExpired({.keep_last = keep_last}, 6, records, now); };
  EXPECT_THAT(choose(6), IsEmpty());
  EXPECT_THAT(choose(4), IsEmpty()) << "draw 2 stays, and with it its segment";
  EXPECT_THAT(choose(3), ElementsAre(0));
  EXPECT_THAT(choose(1), ElementsAre(0, 3));
  EXPECT_THAT(choose(100), IsEmpty());
  EXPECT_THAT(ChooseExpired({}, 6, records, now), IsEmpty());
}

TEST(ChooseExpired, TakesSegmentsThatAreOldEnough) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  std::vector<SegmentRecord> records{RecordOf(0, 1, now - absl::Seconds(60)), RecordOf(1, 1, now - absl::Seconds(59)),
                                     RecordOf(2, 1, now + absl::Hours(1))};
  const RetentionSpec minute{.ttl_seconds = 60};
  EXPECT_THAT(ChooseExpired(minute, 3, records, now), ElementsAre(0));
  EXPECT_THAT(ChooseExpired(minute, 3, records, now + absl::Seconds(1)), ElementsAre(0, 1)) << "the newest stays young";
  records[0].deleted = true;
  EXPECT_THAT(ChooseExpired(minute, 3, records, now + absl::Hours(2)), ElementsAre(1, 2)) << "the newest one, too";
  EXPECT_THAT(ChooseExpired({.keep_last = 1, .ttl_seconds = 60}, 3, records, now), ElementsAre(1)) << "either says so";
}

class RetentionKeeperTest : public DispatcherTest {
 protected:
  // A leased chain of a job with this retention.
  ChainId LeaseRetained(RetentionSpec retention) {
    JobSpec spec = SmallSpec("job", 1);
    spec.retention = retention;
    const ChainId chain{TryCreate(spec).value().id, 0};
    Sync(&worker_);
    Sync(&worker_);
    EXPECT_TRUE(worker_.chains.contains(chain));
    return chain;
  }
  void CommitDraws(const ChainId& chain, int count) {
    for (int i = 0; i < count; ++i) {
      const ProgressCommit commit = worker_.NextCommit(chain);
      ASSERT_TRUE(blobs_.Put(commit.segment->object.name, "0123456789").ok());
      ASSERT_TRUE(Commit(worker_, commit).ok());
      worker_.Took(commit);
    }
  }
  RetentionKeeper::Pass Run() {
    const auto pass = keeper_->Run();
    EXPECT_TRUE(pass.ok()) << pass.status();
    return pass.value_or(RetentionKeeper::Pass());
  }
  // First indices of the segments that are no tombstones.
  std::vector<int64_t> Live(const ChainId& chain) {
    std::vector<int64_t> live;
    const auto records = store_->ListSegments({.job = chain.job, .limit = 10'000, .live_only = true}).value();
    for (const SegmentRecord& record : records) live.push_back(record.segment.first_index);
    return live;
  }
  std::string ObjectOf(const ChainId& chain, int64_t step) const {
    return SegmentObjectName(store_->incarnation(), chain, worker_.chains.at(chain).epoch,
                             FakeWorker::DrawDigest(step));
  }
  std::vector<std::string> Objects() {
    EXPECT_TRUE(collector_->Collect().ok());
    return blobs_.List("").value();
  }
  void RestartCoordinator() {
    Start();
    MakeKeeper();
  }
  void MakeKeeper() {
    collector_.emplace(&executor_, store_.get(), writer_, &blobs_);
    keeper_.emplace(&clock_, &executor_, store_.get(), coordinator_.get(), kLongestCall, [this] { ++told_; });
  }
  absl::StatusOr<Alias> SetAlias(const std::string& name, const std::string& job, int64_t number) {
    return Wait<Alias>([&](auto done) { versions_->SetAlias({kDefaultTenant, name, job, number}, done); });
  }

  FakeWorker worker_{"w1"};
  MemoryBlobStore blobs_;
  std::optional<GarbageCollector> collector_;
  std::optional<RetentionKeeper> keeper_;
  int told_ = 0;
};

TEST_F(RetentionKeeperTest, ObjectsGoAfterTheLongestCallAndNotBefore) {
  MakeKeeper();
  const ChainId chain = LeaseRetained({.keep_last = 2});
  CommitDraws(chain, 5);
  EXPECT_EQ(Run().expired, 3);
  EXPECT_THAT(Live(chain), ElementsAre(3, 4));
  EXPECT_EQ(Objects().size(), 5u) << "a call may be reading them";
  clock_.Advance(kLongestCall - absl::Seconds(1));
  EXPECT_EQ(Run().released, 0);
  EXPECT_EQ(Objects().size(), 5u);
  EXPECT_EQ(told_, 0);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Run().released, 3);
  EXPECT_EQ(told_, 1);
  EXPECT_THAT(Objects(), testing::UnorderedElementsAre(ObjectOf(chain, 40), ObjectOf(chain, 50)))
      << "of a chain that still runs";
  CommitDraws(chain, 1);
  EXPECT_EQ(Run().expired, 1);
  EXPECT_THAT(Live(chain), ElementsAre(4, 5));
}

TEST_F(RetentionKeeperTest, EachExpiredDrawWaitsForTheLongestCall) {
  MakeKeeper();
  const ChainId chain = LeaseRetained({.keep_last = 1});
  CommitDraws(chain, 2);
  EXPECT_EQ(Run().expired, 1);
  clock_.Advance(kLongestCall / 2);
  CommitDraws(chain, 1);
  EXPECT_EQ(Run().expired, 1);
  clock_.Advance(kLongestCall / 2);
  EXPECT_EQ(Run().released, 1);
  EXPECT_THAT(Objects(), Contains(ObjectOf(chain, 20)));
  clock_.Advance(kLongestCall / 2);
  EXPECT_EQ(Run().released, 1);
  EXPECT_THAT(Objects(), ElementsAre(ObjectOf(chain, 30)));
}

TEST_F(RetentionKeeperTest, RestartedCoordinatorWaitsAWholeTermAgain) {
  MakeKeeper();
  const ChainId chain = LeaseRetained({.keep_last = 1});
  CommitDraws(chain, 3);
  EXPECT_EQ(Run().expired, 2);
  clock_.Advance(kLongestCall - absl::Seconds(1));
  RestartCoordinator();
  EXPECT_EQ(Run().released, 0);
  clock_.Advance(kLongestCall - absl::Seconds(1));
  EXPECT_EQ(Run().released, 0);
  EXPECT_EQ(Objects().size(), 3u);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Run().released, 2);
  EXPECT_EQ(Objects().size(), 1u);
}

TEST_F(RetentionKeeperTest, CalendarDecidesWhatIsOldAndNotHowLongItIsReadable) {
  MakeKeeper();
  const ChainId chain = LeaseRetained({.ttl_seconds = 3600});
  CommitDraws(chain, 2);
  EXPECT_EQ(Run().expired, 0);
  clock_.JumpWall(absl::Hours(2));
  EXPECT_EQ(Run().expired, 2) << "the newest, too";
  EXPECT_EQ(Objects().size(), 2u);
  clock_.Advance(kLongestCall);
  EXPECT_EQ(Run().released, 2);
  EXPECT_THAT(Objects(), IsEmpty());
  CommitDraws(chain, 1);
  EXPECT_THAT(Live(chain), ElementsAre(2)) << "the chain goes on behind its tombstones";
  EXPECT_EQ(Run().expired, 0);
}

TEST_F(RetentionKeeperTest, DrawsOfAVersionThatAnAliasNamesStay) {
  MakeKeeper();
  const ChainId chain = LeaseRetained({.keep_last = 1});
  CommitDraws(chain, 2);
  ASSERT_EQ(SetAlias("champion", chain.job, 0)->number, 1);
  CommitDraws(chain, 3);
  EXPECT_EQ(Run().expired, 2);
  EXPECT_THAT(Live(chain), ElementsAre(0, 1, 4));
  EXPECT_EQ(Run().expired, 0);
  ASSERT_EQ(SetAlias("champion", chain.job, 0)->number, 2);
  EXPECT_EQ(Run().expired, 0) << "the older draws are part of the newer version";
  ASSERT_TRUE(Wait<bool>([&](auto done) { versions_->DeleteAlias(kDefaultTenant, "champion", done); }).ok());
  EXPECT_EQ(Run().expired, 2);
  EXPECT_THAT(Live(chain), ElementsAre(4));
}

TEST_F(RetentionKeeperTest, TakesMoreThanOneChangeHoldsAndNothingTwice) {
  MakeKeeper();
  const ChainId chain = LeaseRetained({.keep_last = 3});
  CommitDraws(chain, 2);
  EXPECT_EQ(Run().expired, 0);
  CommitDraws(chain, 100);
  EXPECT_EQ(Run().expired, 99) << "more than one change holds";
  EXPECT_EQ(Live(chain).size(), 3u);
  RestartCoordinator();
  EXPECT_EQ(Run().expired, 0);
}

TEST_F(RetentionKeeperTest, JobWithoutARetentionKeepsEverything) {
  MakeKeeper();
  const ChainId chain = LeaseOne(&worker_);
  CommitDraws(chain, 3);
  EXPECT_EQ(Run().expired, 0);
  EXPECT_EQ(Live(chain).size(), 3u);
}

TEST_F(RetentionKeeperTest, ComesRoundByItself) {
  MakeKeeper();
  keeper_->Start(limits::kUpkeepInterval);
  const ChainId chain = LeaseRetained({.keep_last = 1});
  CommitDraws(chain, 3);
  executor_.RunFor(limits::kUpkeepInterval);
  EXPECT_EQ(Live(chain).size(), 1u);
  executor_.RunFor(kLongestCall + limits::kUpkeepInterval);
  EXPECT_EQ(told_, 1);
  keeper_.reset();
  CommitDraws(chain, 1);
  executor_.RunFor(2 * limits::kUpkeepInterval);
  EXPECT_EQ(Live(chain).size(), 2u) << "nobody looks any more";
}

}  // namespace
}  // namespace chainfleet
