// Runs the Dispatcher, its StateWriter and the embedded store on real threads, for ThreadSanitizer.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "core/store/state_store/sqlite_state_store.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

constexpr int64_t kStepsPerCommit = 100;  // SmallSpec has 1000 steps

template <typename T>
absl::StatusOr<T> Await(const std::function<void(Reply<T>)>& call) {
  struct Shared {
    Mutex mutex;
    CondVar answered;
    std::optional<absl::StatusOr<T>> answer CHAINFLEET_GUARDED_BY(mutex);
  };
  const auto shared = std::make_shared<Shared>();
  call([shared](absl::StatusOr<T> answer) {
    MutexLock lock(&shared->mutex);
    shared->answer = std::move(answer);
    shared->answered.Signal();
  });
  MutexLock lock(&shared->mutex);
  while (!shared->answer) shared->answered.Wait(&shared->mutex);
  return *std::move(shared->answer);
}

class DispatcherThreads : public testing::Test {
 protected:
  DispatcherThreads() : folder_(std::filesystem::path(testing::TempDir()) / "chainfleet-dispatcher-threads") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    store_ = OpenSqliteStateStore((folder_ / "state.db").string(), "s1").value();
    DispatcherOptions options;
    options.sync_interval = absl::Milliseconds(20);
    options.id_key = RngKey{42};
    coordinator_ = std::make_unique<Coordinator>(&clock_, pool_.get(), store_.get(), store_->Load().value(), options);
    dispatcher_ = &coordinator_->dispatcher();
  }
  ~DispatcherThreads() override {
    pool_.reset();
    coordinator_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  bool Ended(const std::string& job) { return dispatcher_->GetJob(job)->finished_at.has_value(); }

  // A worker until every job has ended; its chains commit in each round.
  void Work(const std::string& id, const std::vector<std::string>& jobs) {
    FakeWorker worker(id, /*chain_slots=*/3);
    while (!std::all_of(jobs.begin(), jobs.end(), [this](const std::string& job) { return Ended(job); })) {
      const auto reply =
          Await<SynchronizeReply>([&](auto done) { dispatcher_->Synchronize(worker.Request(), std::move(done)); });
      ASSERT_TRUE(reply.ok()) << reply.status();
      worker.Take(*reply);
      const std::map<ChainId, FakeWorker::Held> held = worker.chains;
      for (const auto& [chain, lease] : held) {
        ProgressCommit commit = worker.NextCommit(chain, kStepsPerCommit);
        if (commit.resume_point.step == 1000) commit.ends_as = ChainState::kSucceeded;
        const auto committed =
            Await<CommitReply>([&](auto done) { dispatcher_->CommitProgress(worker.Made(commit), std::move(done)); });
        ASSERT_TRUE(committed.ok()) << committed.status();
        worker.Took(commit);
      }
    }
  }

  // Makes the calls of users and of the collector until the job has ended.
  void Ask(const std::string& job) {
    while (!Ended(job)) {
      EXPECT_TRUE(dispatcher_->ListJobs({}, 10, "").ok());
      EXPECT_TRUE(store_->ListSegments({.job = job}).ok());
      EXPECT_TRUE(store_->ReferencesOfChain({job, 0}).ok());
      (void)Sessions(*dispatcher_).CheckLease({job, 0}, 1);  // both results are fine
      EXPECT_TRUE(Await<JobView>([&](auto done) {
                    dispatcher_->CreateJob(kDefaultTenant, SmallSpec("dry", 2), "", true, done);
                  }).ok());
    }
  }

  const std::filesystem::path folder_;
  SystemClock clock_;
  std::unique_ptr<ThreadPool> pool_ = std::make_unique<ThreadPool>(4);
  std::unique_ptr<StateStore> store_;
  std::unique_ptr<Coordinator> coordinator_;
  Dispatcher* dispatcher_ = nullptr;
};

TEST_F(DispatcherThreads, WorkersAndUsersAtOnceLoseNoDraw) {
  std::vector<std::string> jobs;
  for (const char* name : {"one", "two"}) {
    const auto job =
        Await<JobView>([&](auto done) { dispatcher_->CreateJob(kDefaultTenant, SmallSpec(name, 6), "", false, done); });
    ASSERT_TRUE(job.ok()) << job.status();
    jobs.push_back(job->id);
  }
  std::vector<std::thread> threads;
  for (const char* worker : {"a", "b", "c", "d"}) threads.emplace_back([&, worker] { Work(worker, jobs); });
  for (const std::string& job : jobs) threads.emplace_back([&] { Ask(job); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& job : jobs) {
    EXPECT_EQ(dispatcher_->GetJob(job)->state, JobState::kSucceeded);
    EXPECT_EQ(store_->ListSegments({.job = job, .limit = 10'000}).value().size(), 6u * 1000 / kStepsPerCommit);
  }
}

}  // namespace
}  // namespace chainfleet
