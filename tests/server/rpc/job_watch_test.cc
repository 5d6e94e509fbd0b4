#include "server/rpc/job_watch.h"

#include <limits>
#include <string>

#include "server/rpc/job_service.h"
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(500);

class JobWatch : public DispatcherTest {
 protected:
  JobWatch() {
    on_job_end_ = [this](const JobView& job, KeepFindings keep) { findings_.OnJobEnd(job, std::move(keep)); };
  }
  // Acts as gRPC, which reports that the first message was sent.
  void Deliver() {
    executor_.RunUntilIdle();
    stream_.OnWriteDone(true);
    executor_.RunFor(kInterval);
  }
  // Registers watchers until the job has no room for more; returns their number.
  int FillUp(const std::string& job) {
    for (int taken = 0;; ++taken) {
      Answer<Dispatcher::Watched> answer;
      dispatcher_->WatchJob(job, 1'000'000, answer.reply());
      executor_.RunUntilIdle();
      if (answer.has()) return taken;
    }
  }
  MessageStream<v1::Job> stream_;
  TraceTable traces_{&executor_};
  FinalFindings findings_{&executor_, store_.get(), &traces_};
};

TEST_F(JobWatch, CancelledWatchLeavesTheDispatcherAtOnce) {
  const std::string job = Create("job", 1);
  WatchJobInto(stream_.feed(), dispatcher_, &findings_, &executor_, job, kInterval);
  Deliver();
  EXPECT_GT(FillUp(job), 0);
  EXPECT_EQ(FillUp(job), 0);
  stream_.OnCancel();
  executor_.RunUntilIdle();
  EXPECT_EQ(FillUp(job), 1) << "the job did not change, and its place is free";
}

TEST_F(JobWatch, TheLastMessageWaitsForTheTracesOfACommitInFlight) {
  const std::string job = Create("job", 1);
  std::shared_ptr<void> expected = traces_.Expect(job);
  ASSERT_TRUE(SetIntent(job, JobIntent::kCancel).ok());
  WatchJobInto(stream_.feed(), dispatcher_, &findings_, &executor_, job, kInterval);
  executor_.RunFor(2 * kInterval);
  stream_.OnWriteDone(true);
  EXPECT_TRUE(stream_.feed()->Send(v1::Job())) << "the call goes on";
  expected.reset();
  executor_.RunUntilIdle();
  stream_.OnWriteDone(true);
  stream_.OnWriteDone(true);
  EXPECT_FALSE(stream_.feed()->Send(v1::Job())) << "it ended with the job";
}

TEST_F(JobWatch, WatchCancelledBetweenTwoMessagesAsksForNoMore) {
  const std::string job = Create("job", 1);
  WatchJobInto(stream_.feed(), dispatcher_, &findings_, &executor_, job, kInterval);
  executor_.RunUntilIdle();
  stream_.OnWriteDone(true);
  stream_.OnCancel();
  EXPECT_GT(FillUp(job), 0);
  executor_.RunFor(2 * kInterval);
  EXPECT_EQ(FillUp(job), 0) << "it took no place";
}

TEST_F(JobWatch, WatchCancelledBetweenTwoMessagesFreesItsCallAtOnce) {
  const std::string job = Create("job", 1);
  WatchJobInto(stream_.feed(), dispatcher_, &findings_, &executor_, job, absl::Hours(1));
  executor_.RunUntilIdle();
  stream_.OnWriteDone(true);
  ASSERT_EQ(stream_.feed().use_count(), 2) << "the stream, and the watch that the timer keeps";
  stream_.OnCancel();
  EXPECT_EQ(stream_.feed().use_count(), 1);
}

// The watches of JobService. Their timers are apart from those of the dispatcher.
class AskedJobWatch : public JobWatch {
 protected:
  // Returns how long after its first message a watch looks at the job again if the client asks for `seconds`.
  absl::Duration IntervalFor(double seconds) {
    v1::WatchJobRequest request;
    request.set_name(job_);
    request.set_min_interval_seconds(seconds);
    grpc::CallbackServerContext context;
    grpc::ServerWriteReactor<v1::Job>* const call = service_.WatchJob(&context, &request);
    executor_.RunUntilIdle();
    EXPECT_EQ(timers_.num_tasks(), 1u);
    const absl::Duration next = timers_.NextDue().value_or(absl::InfiniteDuration()) - clock_.Monotonic();
    call->OnWriteDone(true);
    call->OnCancel();
    call->OnDone();
    timers_.DropAll();
    return next;
  }

  const std::string job_ = Create("job", 1);
  ManualExecutor timers_{&clock_};
  const Authenticator auth_{TokenTable(), &coordinator_->tokens(), nullptr, &clock_};
  JobService service_{
      {.clock = &clock_, .executor = &timers_, .dispatcher = dispatcher_, .findings = &findings_, .auth = &auth_},
      nullptr,
      nullptr,
      nullptr,
      TenantLimits::kNone};
};

TEST_F(AskedJobWatch, NoIntervalIsLongerThanAMinute) {
  EXPECT_EQ(IntervalFor(59), absl::Seconds(59));
  for (const double seconds : {61.0, 3600.0, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(IntervalFor(seconds), absl::Minutes(1)) << seconds;
  }
}

TEST_F(AskedJobWatch, NoIntervalIsShorterThan50Milliseconds) {
  EXPECT_EQ(IntervalFor(0.06), absl::Milliseconds(60));
  EXPECT_EQ(IntervalFor(0.001), absl::Milliseconds(50));
  EXPECT_EQ(IntervalFor(0), absl::Milliseconds(500)) << "the default";
}

}  // namespace
}  // namespace chainfleet
