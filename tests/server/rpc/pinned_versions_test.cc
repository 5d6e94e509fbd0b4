// Tests how often predictions read segment records from the store, and when their draws change.
#include <atomic>
#include <string>
#include <utility>

#include "server/control/retention_keeper.h"
#include "tests/server/rpc/running_server.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

// No worker serves: a call that finds draws is refused with NO_SERVING_WORKER.
constexpr char kFound[] = "NO_SERVING_WORKER", kNoDraws[] = "NO_DRAWS";

// A job with one committed draw of the first of its two chains. One worker holds both.
class PinnedVersionsTest : public RunningServer {
 protected:
  void SetUp() override {
    PutDigits();
    v1::JobSpec spec = SoftmaxJob("softmax", 2);
    spec.mutable_retention()->set_ttl_seconds(3600);
    const auto job = CreateJob(spec);
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = job->id();
    CommitADraw();
  }

  void CommitToOther(std::optional<ChainState> ends_as = std::nullopt) { CommitFirstDraw({job_, 1}, 1, ends_as); }
  // Returns the reason of the refusal.
  std::string Predict(const v1::DrawSelection& selection = {}, const std::string& name = "softmax") {
    v1::PredictRequest request;
    request.set_job(name);
    request.mutable_inputs()->set_type(v1::UINT8);
    for (const int64_t size : {1, 1, 2, 2}) request.mutable_inputs()->add_shape(size);
    request.mutable_inputs()->set_data(std::string(4, '\x40'));
    *request.mutable_selection() = selection;
    const absl::Status status = Call(*predictions_, &v1::PredictService::Stub::Predict, request).status();
    return ReasonOf(status).empty() ? status.ToString() : ReasonOf(status);
  }
  std::string ObjectOfChain(int32_t chain) {
    return state_->ListSegments({.job = job_, .chain = chain})->at(0).segment.object.name;
  }
  void Commit(const StateChange& change) {
    const auto results = coordinator_.writer().Commit({change});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_TRUE(results->at(0).status.ok()) << results->at(0).status;
  }
  int64_t NewReads() { return state_->segment_reads() - std::exchange(reads_, state_->segment_reads()); }

  std::string job_;
  int64_t reads_ = 0;
};

TEST_F(PinnedVersionsTest, OnlyTheFirstCallForAVersionReadsItsSegments) {
  EXPECT_EQ(Predict(), kFound);
  EXPECT_EQ(NewReads(), 1);
  EXPECT_EQ(Predict(), kFound);
  v1::DrawSelection selection;
  selection.set_version(1);
  selection.set_members(1);
  EXPECT_EQ(Predict(selection), kFound);
  EXPECT_EQ(Predict(selection, "@latest"), kFound);
  selection.add_chains(0);
  EXPECT_EQ(Predict(selection), kFound);
  selection.set_chains(0, 1);
  EXPECT_EQ(Predict(selection), kNoDraws) << "of the other chain";
  v1::SetAliasRequest alias;
  alias.set_name("champion");
  alias.set_job("softmax");
  ASSERT_TRUE(Call(*jobs_, &v1::JobService::Stub::SetAlias, alias).ok());
  EXPECT_EQ(Predict({}, "champion"), kFound);
  EXPECT_EQ(NewReads(), 0);
}

TEST_F(PinnedVersionsTest, NewDrawsOfARunningJobAreANewVersionAndTheOldOneStaysWarm) {
  EXPECT_EQ(Predict(), kFound);
  CommitToOther();
  EXPECT_EQ(NewReads(), 1);
  v1::DrawSelection other;
  other.add_chains(1);
  const int64_t before = state_->segments_read();
  EXPECT_EQ(Predict(other), kFound);
  EXPECT_EQ(NewReads(), 2) << "of version 2, both chains";
  EXPECT_EQ(state_->segments_read() - before, 1) << "version 1 has the segment of the first chain";
  other.set_chains(0, 0);
  EXPECT_EQ(Predict(other), kFound);
  other.set_chains(0, 1);
  other.set_version(1);
  EXPECT_EQ(Predict(other), kNoDraws);
  EXPECT_EQ(NewReads(), 0);
}

TEST_F(PinnedVersionsTest, AChainThatFailsAfterTheReadIsLeftOut) {
  CommitToOther(ChainState::kDiverged);
  v1::DrawSelection other;
  other.set_version(1);
  other.add_chains(1);
  other.set_include_failed(true);
  Predict();  // makes version 1
  EXPECT_EQ(Predict(other), kFound);
  other.set_include_failed(false);
  NewReads();
  EXPECT_EQ(Predict(other), kNoDraws);
  EXPECT_EQ(NewReads(), 0);
}

TEST_F(PinnedVersionsTest, ACorruptMarkHidesTheDrawsFromTheNextCallUntilItIsRemoved) {
  CommitToOther();
  EXPECT_EQ(Predict(), kFound);
  Waited<absl::StatusOr<bool>> marked;
  versions_.MarkCorrupt(job_, ObjectOfChain(0), marked.Take());
  ASSERT_TRUE(marked.Get()->ok());
  v1::DrawSelection first;
  first.add_chains(0);
  EXPECT_EQ(Predict(first), kNoDraws);
  EXPECT_EQ(Predict(), kFound) << "of the other chain";
  Commit(change::MarkCorrupt{job_, ObjectOfChain(0), false});  // as DrawVerifier does
  EXPECT_EQ(Predict(first), kFound);
  NewReads();
  EXPECT_EQ(Predict(first), kFound);
  EXPECT_EQ(NewReads(), 0);
}

TEST_F(PinnedVersionsTest, ADrawThatIsMarkedWhileItIsReadIsHiddenFromTheNextCall) {
  std::atomic<bool> marked = false;
  const std::string object = ObjectOfChain(0);
  state_->AfterSegmentsAreRead([&] {
    if (!marked.exchange(true)) Commit(change::MarkCorrupt{job_, object, true});
  });
  EXPECT_EQ(Predict(), kFound) << "it was readable when the call began";
  EXPECT_TRUE(marked);
  EXPECT_EQ(Predict(), kNoDraws);
}

TEST_F(PinnedVersionsTest, ExpiredDrawsAreHiddenFromTheNextCall) {
  EXPECT_EQ(Predict(), kFound);
  FakeClock later;
  later.JumpWall(clock_.Wall() + absl::Hours(2) - later.Wall());
  const auto pass = RetentionKeeper(&later, threads_.get(), state_.get(), &coordinator_, absl::Hours(1), nullptr).Run();
  ASSERT_TRUE(pass.ok()) << pass.status();
  EXPECT_EQ(pass->expired, 1);
  EXPECT_EQ(Predict(), kNoDraws);
}

TEST_F(PinnedVersionsTest, ADeletedVersionAndADeletedJobAreNotServed) {
  EXPECT_EQ(Predict(), kFound);
  v1::DeleteSnapshotRequest version;
  version.set_job("softmax");
  version.set_version(1);
  ASSERT_TRUE(Call(*jobs_, &v1::JobService::Stub::DeleteSnapshot, version).ok());
  v1::DrawSelection selection;
  selection.set_version(1);
  EXPECT_EQ(Predict(selection), "VERSION_NOT_FOUND");
  EXPECT_EQ(Predict(), kFound) << "of version 2, with the same draws";
  ASSERT_TRUE(SetIntent(job_, v1::Job::DELETE).ok());
  const std::string gone = Predict({}, job_);
  EXPECT_TRUE(gone == "NOT_SERVED" || gone.starts_with("NOT_FOUND")) << gone;
}

TEST_F(PinnedVersionsTest, RecordsBeyondTheBoundAreReadAtEachCall) {
  const auto pins = [&](int64_t max_kept_bytes) {
    DispatcherDrawCatalog catalog(parts_, max_kept_bytes);
    NewReads();
    for (int i = 0; i < 3; ++i) {
      Waited<absl::StatusOr<PinnedDraws>> pinned;
      catalog.Pin({.job = job_}, pinned.Take());
      const auto draws = pinned.Get();
      EXPECT_TRUE(draws && draws->ok()) << draws->status();
    }
    return NewReads();
  };
  EXPECT_EQ(pins(100), 3) << "a segment's digests alone take more";
  EXPECT_EQ(pins(2000), 1);
}

}  // namespace
}  // namespace chainfleet
