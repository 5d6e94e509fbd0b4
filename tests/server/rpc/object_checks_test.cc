#include "server/intake/object_checks.h"

#include <new>
#include <set>

#include "tests/server/rpc/one_worker.h"
#include "tests/support/forwarding_blobs.h"
#include "tests/support/manual_executor.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ObjectChecksTest : public testing::Test {
 protected:
  absl::Status Schedule(int number) {
    return checks_.Schedule([this, number] { return !unwanted_.contains(number); },
                            [this, number] { ran_.push_back(number); });
  }

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  ObjectChecks checks_{&executor_, 2, 3};
  std::set<int> unwanted_;
  std::vector<int> ran_;
};

TEST_F(ObjectChecksTest, RunInTheOrderInWhichTheyCame) {
  for (int number = 1; number <= 3; ++number) ASSERT_TRUE(Schedule(number).ok());
  EXPECT_THAT(ran_, IsEmpty()) << "not inside the call";
  executor_.RunUntilIdle();
  EXPECT_THAT(ran_, ElementsAre(1, 2, 3));
  ASSERT_TRUE(Schedule(4).ok());
  executor_.RunUntilIdle();
  EXPECT_THAT(ran_, ElementsAre(1, 2, 3, 4));
}

TEST_F(ObjectChecksTest, BeyondTheBoundTheyAreRefusedUntilOneHasRun) {
  for (int number = 1; number <= 3; ++number) ASSERT_TRUE(Schedule(number).ok());
  const absl::Status refused = Schedule(4);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
  EXPECT_EQ(BoundOf(refused), "object_checks");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("repeat with backoff"));
  executor_.RunOne();
  EXPECT_TRUE(Schedule(5).ok());
  executor_.RunUntilIdle();
  EXPECT_THAT(ran_, ElementsAre(1, 2, 3, 5));
}

TEST_F(ObjectChecksTest, AnUnwantedCheckDoesNotRunAndGivesUpItsPlace) {
  for (int number = 1; number <= 3; ++number) ASSERT_TRUE(Schedule(number).ok());
  unwanted_ = {1, 3};
  EXPECT_TRUE(Schedule(4).ok());
  EXPECT_TRUE(Schedule(5).ok());
  EXPECT_EQ(ReasonOf(Schedule(6)), "QUEUE_FULL");
  unwanted_.insert(4);
  executor_.RunUntilIdle();
  EXPECT_THAT(ran_, ElementsAre(2, 5));
}

TEST_F(ObjectChecksTest, RunsAtMostItsWidthAtATime) {
  for (int number = 1; number <= 3; ++number) ASSERT_TRUE(Schedule(number).ok());
  EXPECT_EQ(executor_.num_tasks(), 2u);
  for (int i = 0; i < 2; ++i) {
    executor_.RunOne();
    EXPECT_EQ(executor_.num_tasks(), 2u) << "a turn each";
  }
}

TEST_F(ObjectChecksTest, GoOnAfterChecksThatRunOutOfMemory) {
  for (int turn = 1; turn <= 2; ++turn) {
    ASSERT_TRUE(checks_.Schedule([] { return true; }, [] { throw std::bad_alloc(); }).ok());
  }
  for (int turn = 1; turn <= 2; ++turn) EXPECT_THROW(executor_.RunOne(), std::bad_alloc);
  ASSERT_TRUE(Schedule(1).ok());
  executor_.RunUntilIdle();
  EXPECT_THAT(ran_, ElementsAre(1));
}

// Objects whose lookups block until released.
class SilentBlobs final : public ForwardingBlobs {
 public:
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override {
    MutexLock lock(&mutex_);
    asked_.insert(name);
    changed_.SignalAll();
    while (silent_) changed_.Wait(&mutex_);
    return blobs.SizeBytes(name);
  }

  void LetGo() {
    MutexLock lock(&mutex_);
    silent_ = false;
    changed_.SignalAll();
  }
  void WaitUntilAsked() {
    MutexLock lock(&mutex_);
    while (asked_.empty()) changed_.Wait(&mutex_);
  }
  std::set<std::string> asked() const {
    MutexLock lock(&mutex_);
    return asked_;
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  mutable std::set<std::string> asked_ CHAINFLEET_GUARDED_BY(mutex_);
  bool silent_ CHAINFLEET_GUARDED_BY(mutex_) = true;
};

// A server whose object store does not answer; other calls of the store have one thread.
class SilentStoreTest : public OneWorker {
 protected:
  static constexpr size_t kWaiting = 2;

  SilentStoreTest() {
    ServiceParts parts = parts_;
    parts.blobs = &silent_blobs_;
    parts.executor = &store_calls_;
    parts.object_checks = &checks_;
    second_ = GrpcServer::Start({"127.0.0.1:0"}, parts, &shards_, &batcher_, &evaluations_, &metrics_).value();
    metrics_address_ = registry_.Serve("127.0.0.1:0").value();
    workers_ = v1::WorkerService::NewStub(
        grpc::CreateChannel("127.0.0.1:" + std::to_string(second_->port()), grpc::InsecureChannelCredentials()));
    EXPECT_TRUE(CreateJob(GaussianJob("walk", 4)).ok());
    Granted([&]() -> absl::StatusOr<SynchronizeReply> {
      CHAINFLEET_ASSIGN_OR_RETURN(SynchronizeReply reply, Synchronize());
      grants_ = reply.grants;
      return reply;
    });
  }
  ~SilentStoreTest() override {
    silent_blobs_.LetGo();
    second_->Shutdown(absl::Seconds(1));
  }

  // A commit in flight.
  struct Sent {
    grpc::ClientContext context;
    v1::CommitProgressRequest request;
    v1::CommitProgressReply reply;
    Waited<absl::Status> answer;
  };
  Sent& Send(
      const ProgressCommit& commit, std::function<void(const absl::Status&)> then = [](const absl::Status&) {}) {
    sent_.push_back(std::make_unique<Sent>());
    Sent& sent = *sent_.back();
    SetDeadline(&sent.context);
    sent.request = ToProto(commit);
    workers_->async()->CommitProgress(&sent.context, &sent.request, &sent.reply,
                                      [take = sent.answer.Take(), then = std::move(then)](const grpc::Status& status) {
                                        then(FromGrpc(status));
                                        take(FromGrpc(status));
                                      });
    return sent;
  }
  // Returns the first draw of a chain, whose object exists.
  ProgressCommit DrawOf(size_t chain) {
    const std::string draw = "draw of " + std::to_string(chain);
    const BlobRef ref = RefOf(grants_[chain], draw);
    EXPECT_TRUE(silent_blobs_.Put(ref.name, draw).ok());
    return CommitOf(grants_[chain], ref);
  }
  // One check runs, and one of three more finds no place; returns which one.
  size_t FillUp() {
    Send(DrawOf(0));
    silent_blobs_.WaitUntilAsked();
    Waited<size_t> refused;
    for (size_t chain = 1; chain <= kWaiting + 1; ++chain) {
      Send(DrawOf(chain), [chain, take = refused.Take()](const absl::Status& status) {
        if (absl::IsResourceExhausted(status)) take(chain);
      });
    }
    return refused.Get().value_or(1);
  }
  bool IsOk(size_t call) {
    const std::optional<absl::Status> status = sent_[call]->answer.Get();
    return status && status->ok();
  }

  SilentBlobs silent_blobs_;
  std::vector<Grant> grants_;
  std::string metrics_address_;
  std::vector<std::unique_ptr<Sent>> sent_;
  ThreadPool call_threads_{2};  // ends before what its tasks use
  BoundedExecutor store_calls_{&call_threads_, 1};
  ObjectChecks checks_{&call_threads_, 1, kWaiting};
  std::unique_ptr<GrpcServer> second_;
};

TEST_F(SilentStoreTest, CommitsWithoutObjectsPass) {
  Send(DrawOf(0));
  silent_blobs_.WaitUntilAsked();
  ProgressCommit commit = CommitOf(grants_[1], {});
  commit.segment.reset();
  const auto passed = Commit(commit);
  EXPECT_TRUE(passed.ok()) << passed.status();
  EXPECT_EQ(GetJob("walk")->num_draws(), 0);
  silent_blobs_.LetGo();
  EXPECT_TRUE(IsOk(0));
  EXPECT_EQ(GetJob("walk")->num_draws(), 1);
}

TEST_F(SilentStoreTest, BeyondTheBoundTheyAreRefusedAndNothingIsLost) {
  const size_t refused = FillUp();
  const absl::Status status = *sent_[refused]->answer.Get();
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  EXPECT_THAT(std::string(status.message()), HasSubstr("chain " + ToString(grants_[refused].chain)));
  silent_blobs_.LetGo();
  for (size_t call = 0; call < sent_.size(); ++call) EXPECT_EQ(IsOk(call), call != refused) << call;
  EXPECT_EQ(GetJob("walk")->num_draws(), 3);
  const auto again = Commit(DrawOf(refused));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->replayed());
  EXPECT_EQ(GetJob("walk")->num_draws(), 4);
}

TEST_F(SilentStoreTest, CancelledOnesNeverReachTheStoreAndLeaveTheirPlace) {
  const size_t refused = FillUp();
  const size_t cancelled = refused == 1 ? 2 : 1;
  sent_[cancelled]->context.TryCancel();
  const std::string seen =
      "chainfleet_grpc_handled_total{code=\"CANCELLED\",method=\"/chainfleet.v1.WorkerService/CommitProgress\"} 1\n";
  for (int i = 0; i < 10'000 && Scrape(metrics_address_).find(seen) == std::string::npos; ++i) continue;
  Sent& again = Send(DrawOf(refused));
  silent_blobs_.LetGo();
  EXPECT_TRUE(again.answer.Get()->ok()) << *again.answer.Get();
  for (size_t call = 0; call < 4; ++call) EXPECT_EQ(IsOk(call), call != refused && call != cancelled) << call;
  EXPECT_THAT(silent_blobs_.asked(), Not(Contains(DrawOf(cancelled).segment->object.name)));
  EXPECT_EQ(GetJob("walk")->num_draws(), 3);
  const auto repeated = Commit(DrawOf(cancelled));
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_FALSE(repeated->replayed());
}

}  // namespace
}  // namespace chainfleet
