// Runs random histories of workers that die, hang, repeat calls and lose replies, over a server that restarts. The
// committed draws of a chain are always one path.
#include <random>

#include "tests/server/control/dispatcher_fixture.h"
#include "tests/support/store_harness.h"

namespace chainfleet {
namespace {

class RandomHistory : public DispatcherTest, public testing::WithParamInterface<StoreKind> {
 protected:
  void Begin(uint32_t seed) {
    random_.seed(seed);
    coordinator_.reset();
    opened_.reset();
    harness_.reset();  // removes its folder before the next one is created
    harness_ = MakeHarness(GetParam());
    Open();
    workers_ = {FakeWorker("w1", 3), FakeWorker("w2", 3), FakeWorker("w3", 2)};
    acknowledged_.clear();
    epochs_.clear();
    jobs_ = {Create("a", 3), Create("b", 2)};
  }
  void Open() {
    coordinator_.reset();
    opened_ = harness_->Open();
    StartOn(opened_.get());
  }
  bool OneIn(uint32_t n) { return random_() % n == 0; }
  FakeWorker& AnyWorker() { return workers_[random_() % workers_.size()]; }

  // The reply may be lost.
  void Synchronize(FakeWorker* worker) {
    const auto answer = Send(worker);
    if (!answer.has()) executor_.RunFor(absl::Milliseconds(random_() % 6000));
    if (answer.has() && answer.get().ok() && !OneIn(5)) worker->Take(*answer.get());
  }
  void CommitSomething(FakeWorker* worker) {
    if (worker->chains.empty()) return;
    auto held = worker->chains.begin();
    std::advance(held, static_cast<int64_t>(random_() % worker->chains.size()));
    const ChainId chain = held->first;
    ProgressCommit commit = worker->NextCommit(chain, 10);
    const auto stop = worker->stops.find(chain);
    if (commit.resume_point.step >= 300) commit.ends_as = ChainState::kSucceeded;
    if (stop != worker->stops.end()) commit.ends_as = ChainState::kPending;
    const auto reply = Commit(*worker, commit);
    if (reply.ok()) acknowledged_[chain].push_back(commit.segment->digest);
    if (OneIn(6)) return;  // the worker gets no reply, and sends the same again
    if (reply.ok()) {
      worker->Took(commit);
    } else if (!absl::IsUnavailable(reply.status())) {
      worker->chains.erase(chain);
    }
  }
  void Act() {
    FakeWorker& worker = AnyWorker();
    switch (random_() % 12) {
      case 0:
        worker.Restart();
        break;
      case 1:
        executor_.RunFor(absl::Seconds(static_cast<int64_t>(random_() % 40)));
        break;
      case 2:
        if (OneIn(3)) Open();
        break;
      case 3:
        SetIntent(jobs_[random_() % 2], OneIn(2) ? JobIntent::kPause : JobIntent::kRun).IgnoreError();
        break;
      case 4:
        if (!worker.chains.empty()) GiveBack(&worker, worker.chains.begin()->first, ReleasedChain::Why::kStopped);
        break;
      case 5:
      case 6:
      case 7:
        Synchronize(&worker);
        break;
      default:
        CommitSomething(&worker);
    }
  }
  void CheckEpochsRise() {
    for (const std::string& id : jobs_) {
      const JobView job = dispatcher_->GetJob(id).value();
      for (const ChainView& chain : job.chains) {
        EXPECT_GE(chain.lease_epoch, epochs_[chain.id]);
        epochs_[chain.id] = chain.lease_epoch;
      }
    }
  }
  // Reads the store, because the tables are its cache.
  void CheckSuspectsAreAlone() {
    const StoredState state = opened_->Load().value();
    std::map<std::string, int> leased, suspects;  // by process
    for (const StoredJob& job : state.jobs) {
      for (const ChainRow& row : job.chains) {
        if (row.state != ChainState::kLeased) continue;
        ++leased[row.incarnation];
        suspects[row.incarnation] += row.suspect();
      }
    }
    for (const auto& [process, count] : suspects) {
      EXPECT_TRUE(count == 0 || leased[process] == 1) << process << " runs a suspect and others";
    }
  }
  void CheckPaths() {
    const StoredState state = opened_->Load().value();
    for (const StoredJob& job : state.jobs) {
      for (const ChainRow& row : job.chains) CheckPath(row);
    }
  }
  void CheckPath(const ChainRow& row) {
    const auto records = opened_->ListSegments({.job = row.id.job, .chain = row.id.index, .limit = 10'000}).value();
    int64_t next = 0, epoch = 0, step = 0;
    DigestHex parent = FirstParentDigest();
    std::set<DigestHex> digests;
    for (const SegmentRecord& record : records) {
      EXPECT_EQ(record.segment.first_index, next);
      EXPECT_EQ(record.segment.parent_digest, parent);
      EXPECT_GE(record.lease_epoch, epoch) << "nothing is accepted from a fenced epoch";
      EXPECT_GT(record.segment.steps.front(), step);
      next += record.segment.num_draws();
      parent = record.segment.digest;
      epoch = record.lease_epoch;
      step = record.segment.steps.back();
      digests.insert(record.segment.digest);
    }
    EXPECT_EQ(row.num_draws, next);
    EXPECT_EQ(row.last_digest, parent);
    EXPECT_GE(row.step, step);
    for (const DigestHex& digest : acknowledged_[row.id]) {
      EXPECT_TRUE(digests.contains(digest)) << "an acknowledged draw is lost";
    }
    const ChainView view = Chain(row.id);
    EXPECT_EQ(view.state, row.state) << "the tables are the store's cache";
    EXPECT_EQ(view.num_draws, row.num_draws);
  }

  std::mt19937 random_;
  std::unique_ptr<StoreHarness> harness_;
  std::unique_ptr<StateStore> opened_;
  std::vector<FakeWorker> workers_;
  std::vector<std::string> jobs_;
  std::map<ChainId, std::vector<DigestHex>> acknowledged_;
  std::map<ChainId, int64_t> epochs_;
};

TEST_P(RandomHistory, CommittedDrawsAreOnePathAndWorkEndsOnceFaultsStop) {
  const uint32_t seeds = GetParam() == StoreKind::kMemory ? 60 : 2;
  for (uint32_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Begin(seed);
    for (int i = 0; i < 300; ++i) {
      Act();
      CheckEpochsRise();
      CheckSuspectsAreAlone();
    }
    CheckPaths();
    for (const std::string& id : jobs_) SetIntent(id, JobIntent::kRun).IgnoreError();
    for (int i = 0; i < 400; ++i) {
      for (FakeWorker& worker : workers_) {
        Sync(&worker);
        for (int commits = 0; commits < 3; ++commits) CommitSomething(&worker);
      }
    }
    CheckPaths();
    for (const std::string& id : jobs_) {
      const JobState state = dispatcher_->GetJob(id)->state;
      EXPECT_TRUE(IsFinal(state)) << id << " is " << ToString(state);
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(AllStores, RandomHistory, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet
