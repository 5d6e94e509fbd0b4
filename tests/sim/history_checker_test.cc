// The checker must find each broken promise: the tests change one thing in a short true
// history.
#include "tests/sim/history_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/support/memory_blob_store.h"
#include "tests/support/memory_database.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Event = History::Event;

const ChainId kChain{"job-aaaaaa", 0};
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

Draw DrawAt(int64_t step) { return {step, 1, {{static_cast<float>(step), 0.5f}}}; }

// A chain with draws at steps 1, 2, ..., two in each segment, as a store without checks would write them.
class HistoryCheckerTest : public testing::Test {
 protected:
  HistoryCheckerTest() {
    auto plan = std::make_shared<JobPlan>();
    plan->job = kChain.job;
    plan->spec.chains = 1;
    Apply(change::CreateJob{plan, ""});
    for (int64_t step = 1; step <= 6; ++step) calm_.push_back(DrawAt(step));
  }

  ApplyResult Apply(StateChange change) {
    const std::vector<StateChange> changes{std::move(change)};
    return store_->Apply(changes, kNow).value().front();
  }
  void Grant(int64_t epoch) {
    ASSERT_TRUE(Apply(change::GrantLease{kChain, epoch, "w", "w-" + std::to_string(epoch)}).status.ok());
    history_.Add(kChain, {.lease_epoch = epoch, .holder = "w-" + std::to_string(epoch)});
  }
  SegmentContent Content(std::vector<Draw> draws) const {
    return {kChain,
            {.first_index = num_draws_, .kinds = {DrawKind::kTheta}, .parent_digest = last_digest_},
            std::move(draws)};
  }
  // Returns the next commit as a worker makes it.
  change::CommitProgress CommitOf(int64_t epoch, const SegmentContent& content) {
    Segment segment = content.segment;
    const std::string bytes = EncodeSegment(content.chain, content.draws, {{"theta", {2}, 0, 0}}, &segment);
    change::CommitProgress commit;
    commit.author.worker = "w";
    commit.incarnation = "w-" + std::to_string(epoch);
    commit.chain = kChain;
    commit.lease_epoch = epoch;
    commit.resume_point = {content.draws.back().step, "state", std::nullopt, Sha256Hex("state")};
    segment.object = {SegmentObjectName("s1", kChain, epoch, segment.digest), static_cast<int64_t>(bytes.size()),
                      Sha256Hex(bytes)};
    EXPECT_TRUE(blobs_.Put(segment.object.name, bytes).ok());
    commit.segment = std::move(segment);
    return commit;
  }
  void Commit(const change::CommitProgress& change) {
    ASSERT_TRUE(Apply(change).status.ok());
    Remember(change, Event::Kind::kAccepted);
    Remember(change, Event::Kind::kAcknowledged);
    num_draws_ += change.segment->num_draws();
    last_digest_ = change.segment->digest;
    last_object_ = change.segment->object.name;
  }
  void Remember(const change::CommitProgress& change, Event::Kind kind) {
    history_.Add(kChain, {.kind = kind,
                          .lease_epoch = change.lease_epoch,
                          .holder = change.incarnation,
                          .step = change.resume_point.step,
                          .first_index = change.segment->first_index,
                          .digest = change.segment->digest});
  }
  void CommitSteps(int64_t epoch, std::vector<int64_t> steps) {
    std::vector<Draw> draws;
    for (const int64_t step : steps) draws.push_back(DrawAt(step));
    Commit(CommitOf(epoch, Content(std::move(draws))));
  }
  // Two workers hold the chain in turn.
  void LiveWell() {
    Grant(1);
    CommitSteps(1, {1, 2});
    Apply(change::EndLease{kChain, 1, false, false, "lost"});
    Grant(2);
    CommitSteps(2, {3, 4});
  }
  // Retention deletes the segment and its object.
  void Expire(int64_t first_index) {
    const ApplyResult result = Apply(change::ExpireSegments{kChain, {first_index}});
    ASSERT_EQ(result.objects.size(), 1u);
    ASSERT_TRUE(blobs_.Delete(result.objects[0]).ok());
  }
  std::vector<std::string> Check() {
    HistoryChecker checker(store_.get(), &blobs_, [this](const ChainId&) { return &calm_; });
    return checker.Check(history_);
  }

  const std::unique_ptr<StateStore> store_ = MemoryDatabase("s1").Open();
  MemoryBlobStore blobs_;
  History history_;
  DrawPath calm_;
  int64_t num_draws_ = 0;
  DigestHex last_digest_ = FirstParentDigest();
  std::string last_object_;
};

TEST_F(HistoryCheckerTest, FindsNothingWrongWithATrueHistory) {
  LiveWell();
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(HistoryCheckerTest, FindsACommitOfAFencedEpoch) {
  LiveWell();
  history_.Add(kChain, {.kind = Event::Kind::kAccepted, .lease_epoch = 1, .holder = "w-1", .step = 5});
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("step 5 was accepted from lease epoch 1 of w-1, fenced by 2 of w-2")));
}

TEST_F(HistoryCheckerTest, FindsAnEpochThatWasGrantedTwice) {
  LiveWell();
  history_.Add(kChain, {.lease_epoch = 2, .holder = "w-3"});
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("lease epoch 2 of w-3 was granted after 2 of w-2")));
}

TEST_F(HistoryCheckerTest, FindsAnAcknowledgedDrawThatIsLost) {
  LiveWell();
  history_.Add(kChain, {.kind = Event::Kind::kAcknowledged, .lease_epoch = 2, .first_index = 4, .digest = "d"});
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("draw 4 was acknowledged under lease epoch 2 and is lost")));
}

TEST_F(HistoryCheckerTest, FindsAnObjectThatIsGone) {
  LiveWell();
  ASSERT_TRUE(blobs_.Delete(last_object_).ok());
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("the object of draw 2, " + last_object_ + ": NOT_FOUND")));
}

TEST_F(HistoryCheckerTest, FindsAFlippedBit) {
  LiveWell();
  std::string bytes = blobs_.Get(last_object_).value();
  bytes.back() ^= 1;
  ASSERT_TRUE(blobs_.Replace(last_object_, bytes).ok());
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("has other bytes than its record says")));
}

TEST_F(HistoryCheckerTest, FindsARecordThatTellsOfOtherDraws) {
  Grant(1);
  change::CommitProgress commit = CommitOf(1, Content({DrawAt(1), DrawAt(2)}));
  commit.segment->weights[1] = 2;
  Commit(commit);
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("holds other draws than its record says")));
}

TEST_F(HistoryCheckerTest, FindsADigestThatDoesNotFollowFromTheDraws) {
  Grant(1);
  change::CommitProgress commit = CommitOf(1, Content({DrawAt(1)}));
  commit.segment->digest = DigestHex(64, 'a');
  Commit(commit);
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("has another digest")));
}

TEST_F(HistoryCheckerTest, FindsDrawsThatAreNotThoseOfACalmRun) {
  Grant(1);
  Draw other = DrawAt(2);
  other.theta[0][1] = 0.25f;
  Commit(CommitOf(1, Content({DrawAt(1), other})));
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("state 1 at step 2 is not the one of a calm run")));
}

TEST_F(HistoryCheckerTest, FindsAChainThatEndsShortOfItsDraws) {
  Grant(1);
  change::CommitProgress commit = CommitOf(1, Content({DrawAt(1), DrawAt(2)}));
  commit.ends_as = ChainState::kSucceeded;
  Commit(commit);
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("ended with 2 draws, a calm run has 6")));
}

TEST_F(HistoryCheckerTest, CountsAStateThatWasCutByAHandBackAsOne) {
  calm_ = {DrawAt(1)};
  calm_[0].weight = 3;
  calm_[0].step = 3;
  Grant(1);
  Draw first = DrawAt(1), further = DrawAt(1);
  further.weight = 2;
  further.step = 3;
  Commit(CommitOf(1, Content({first})));
  change::CommitProgress last = CommitOf(1, Content({further}));
  last.ends_as = ChainState::kSucceeded;
  Commit(last);
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(HistoryCheckerTest, TombstonesKeepTheirPlaceInThePath) {
  LiveWell();
  CommitSteps(2, {5, 6});
  for (const int64_t first_index : {2, 0}) {
    Expire(first_index);
    EXPECT_THAT(Check(), IsEmpty());
  }
  calm_[4].step = 7;
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("the state at step 5, behind tombstones, is not that of a calm run")));
}

TEST_F(HistoryCheckerTest, FindsAStateBehindTombstonesThatIsNotThatOfACalmRun) {
  LiveWell();
  Expire(0);
  calm_[2].theta[0][1] = 0.25f;
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("the state at step 3, behind tombstones, is not that of a calm run")));
}

TEST_F(HistoryCheckerTest, CountsTombstonesOfAChainThatHasEnded) {
  LiveWell();
  change::CommitProgress last = CommitOf(2, Content({DrawAt(5)}));
  last.ends_as = ChainState::kSucceeded;
  Commit(last);
  Expire(0);
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("its records count 5 kept steps, a calm run 6")));
  calm_.pop_back();
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(HistoryCheckerTest, FindsObjectsThatNothingRefersTo) {
  LiveWell();
  HistoryChecker checker(store_.get(), &blobs_, [](const ChainId&) { return nullptr; });
  EXPECT_THAT(checker.FindGarbage(), IsEmpty());
  const std::string left = ResumeObjectName("s1", kChain, 1, Sha256Hex("left"));
  ASSERT_TRUE(blobs_.Put(left, "left").ok());
  EXPECT_THAT(checker.FindGarbage(), ElementsAre(left));
}

}  // namespace
}  // namespace chainfleet
