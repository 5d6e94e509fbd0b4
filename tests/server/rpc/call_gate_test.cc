// Tests the admission of calls: the bounds alone, and the gate of a real server.
#include "server/rpc/call_gate.h"

#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/rpc/bytes_in_flight.h"
#include "server/rpc/call_limits.h"
#include "server/rpc/cancelled_calls.h"
#include "server/rpc/receiving_calls.h"
#include "server/rpc/refused_peers.h"
#include "tests/server/rpc/contract_methods.h"
#include "tests/server/rpc/running_server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Le;
using testing::SizeIs;

class ReceivingCallsTest : public testing::Test {
 protected:
  uint64_t Begin(const std::string& connection, int name, absl::Duration now = absl::ZeroDuration()) {
    return receiving_.Begin(connection, now, [this, name](const absl::Status& why) {
      EXPECT_FALSE(why.ok());
      cancelled_.push_back(name);
    });
  }
  // Makes all started calls old enough to count.
  size_t WatchTwice(absl::Duration now) {
    receiving_.Watch(now);
    return receiving_.Watch(now);
  }

  std::map<std::string, int64_t> received_;
  ReceivingCalls receiving_{3 * limits::kMiB, [this](const std::string& connection) { return received_[connection]; }};
  std::vector<int> cancelled_;
};

TEST_F(ReceivingCallsTest, TheConnectionWithTheMostBytesLosesItsOldestCall) {
  const uint64_t other = Begin("other", 0);
  const uint64_t first = Begin("many", 1);
  received_["many"] = 2 * limits::kMiB;
  const uint64_t second = Begin("many", 2, absl::Seconds(1));
  received_["many"] = 3 * limits::kMiB;
  received_["other"] = limits::kMiB / 2;
  EXPECT_EQ(receiving_.Watch(absl::Seconds(2)), 3u) << "they have just begun";
  EXPECT_EQ(receiving_.Watch(absl::Seconds(2)), 2u);
  EXPECT_THAT(cancelled_, ElementsAre(1)) << "the second holds no more than has come since it began";
  EXPECT_EQ(BoundOf(receiving_.End(first)), "receiving_bytes");
  EXPECT_TRUE(receiving_.End(second).ok());
  Begin("many", 3, absl::Seconds(2));
  received_["many"] += 2 * limits::kMiB;
  EXPECT_EQ(WatchTwice(absl::Seconds(3)), 2u) << "there is room again";
  EXPECT_TRUE(receiving_.End(other).ok());
}

TEST_F(ReceivingCallsTest, ASendingCallOutlivesAStalledOne) {
  Begin("stopped", 1);
  received_["stopped"] = 2 * limits::kMiB;
  Begin("sending", 2, absl::Seconds(9));
  received_["sending"] = 2 * limits::kMiB;
  EXPECT_EQ(WatchTwice(absl::Seconds(10)), 1u);
  EXPECT_THAT(cancelled_, ElementsAre(1));
}

TEST_F(ReceivingCallsTest, NoneOfAFleetsBurstIsLost) {
  for (int i = 0; i < 100; ++i) {
    const std::string worker = "worker " + std::to_string(i);
    Begin(worker, i);
    received_[worker] += 1000;
  }
  EXPECT_EQ(WatchTwice(absl::Seconds(5)), 100u);
  EXPECT_THAT(cancelled_, ElementsAre());
}

TEST_F(ReceivingCallsTest, CallsWithoutABytePayForThemselves) {
  Begin("other", 0);
  for (int i = 1; i <= 1000; ++i) Begin("many", i);
  const auto room = static_cast<size_t>(3 * limits::kMiB / limits::kReceivingCallBytes);
  EXPECT_EQ(WatchTwice(absl::Seconds(5)), room);
  EXPECT_THAT(cancelled_, SizeIs(1001 - room));
  EXPECT_THAT(cancelled_, Each(Gt(0)));
}

TEST_F(ReceivingCallsTest, CancelsThoseThatTakeTooLong) {
  const uint64_t late = Begin("a", 1, absl::Seconds(1));
  const uint64_t young = Begin("a", 2, absl::Seconds(3));
  EXPECT_EQ(receiving_.Watch(absl::Seconds(2) + limits::kReceiveDeadline), 1u);
  EXPECT_THAT(cancelled_, ElementsAre(1));
  EXPECT_EQ(receiving_.End(late).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(receiving_.End(young).ok());
}

TEST(BytesInFlight, CountsAllButSmallMessagesUntilTheyAreGone) {
  BytesInFlight bytes(12 * limits::kMiB);
  auto first = bytes.Hold("a", 6 * limits::kMiB);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(bytes.Hold("a", limits::kMiB), nullptr) << "a connection holds no more than it leaves free";
  EXPECT_NE(bytes.Hold("b", 3 * limits::kMiB), nullptr);
  EXPECT_NE(bytes.Hold("a", limits::kFreeBytes), nullptr) << "small ones are not counted";
  EXPECT_EQ(bytes.held_bytes(), 6 * limits::kMiB);
  first.reset();
  EXPECT_EQ(bytes.held_bytes(), 0);
  EXPECT_NE(bytes.Hold("a", 6 * limits::kMiB), nullptr);
}

TEST(RefusedPeers, AreAnsweredLaterAndLaterUntilTheyRest) {
  RefusedPeers peers;
  absl::Duration now, delay;
  for (int i = 0; i < limits::kFreeRefusals; ++i) EXPECT_EQ(peers.Refuse("ipv4:10.0.0.1", now), absl::ZeroDuration());
  for (int i = 0; i < 3; ++i) {
    const absl::Duration longer = peers.Refuse("ipv4:10.0.0.1", now);
    EXPECT_GT(longer, delay);
    delay = longer;
  }
  for (int i = 0; i < 100; ++i) EXPECT_LE(peers.Refuse("ipv4:10.0.0.1", now), limits::kMaxRefusalDelay);
  EXPECT_EQ(peers.Refuse("ipv4:10.0.0.2", now), absl::ZeroDuration()) << "others are not slowed down";
  now += absl::Minutes(10);
  EXPECT_EQ(peers.Refuse("ipv4:10.0.0.1", now), absl::ZeroDuration());
}

TEST(RefusedPeers, AnotherAddressOfANetworkIsDelayedLikeTheFirst) {
  RefusedPeers peers;
  for (int i = 0; i < limits::kFreeRefusals; ++i) {
    EXPECT_EQ(peers.Refuse(absl::StrCat("ipv6:%5B2001:db8::", i, "%5D:4711"), {}), absl::ZeroDuration());
  }
  EXPECT_GT(peers.Refuse("ipv6:%5B2001:db8::1:1%5D:4711", {}), absl::ZeroDuration());
}

TEST(RefusedPeers, AFloodFromOtherHostsFreesNoOffender) {
  RefusedPeers peers;
  for (int i = 0; i <= limits::kFreeRefusals; ++i) peers.Refuse("ipv4:10.0.0.1", {});
  for (size_t i = 0; i < limits::kRefusedPeers + 100; ++i) peers.Refuse(absl::StrCat("unix:", i), {});
  EXPECT_GT(peers.Refuse("ipv4:10.0.0.1", {}), absl::ZeroDuration());
}

TEST(RefusedPeers, ShareTheLinesOfTheAuditLog) {
  const std::string folder = testing::TempDir() + "/chainfleet-refused-peers";
  std::filesystem::remove_all(folder);
  FakeClock clock;
  const auto audit = AuditLog::Open(folder, &clock, {}).value();
  RefusedPeers peers(audit.get());
  const auto refuse = [&](int host) { peers.Refuse(absl::StrCat("unix:", host), clock.Monotonic()); };
  for (int host = 0; host < limits::kAuditLinesAtOnce + 40; ++host) refuse(host);
  EXPECT_THAT(audit->Read("")->lines, SizeIs(limits::kAuditLinesAtOnce));
  clock.Advance(limits::kAuditLineInterval);
  for (int host = 1000; host < 1005; ++host) refuse(host);
  const std::vector<std::string> lines = audit->Read("")->lines;
  ASSERT_THAT(lines, SizeIs(limits::kAuditLinesAtOnce + 1));
  EXPECT_THAT(lines.back(), HasSubstr(R"("left_out":40)"));
  clock.Advance(absl::Seconds(10));
  refuse(1004);
  EXPECT_THAT(audit->Read("")->lines.back(), HasSubstr(R"("refusals":2)")) << "with the one that got no line";
  std::filesystem::remove_all(folder);
}

TEST(RefusedPages, ShareASlowerRateOfLines) {
  const std::string folder = testing::TempDir() + "/chainfleet-refused-pages";
  std::filesystem::remove_all(folder);
  FakeClock clock;
  const auto audit = AuditLog::Open(folder, &clock, {}).value();
  const auto refuse = AuditRefusedPages(audit.get(), &clock);
  for (int i = 0; i < 3; ++i) refuse("ipv4:10.0.0.1:4711", "/metrics");
  ASSERT_THAT(audit->Read("")->lines, SizeIs(1)) << "one for a host";
  EXPECT_THAT(audit->Read("")->lines[0], HasSubstr(R"("peer":"ipv4:10.0.0.1","method":"GET /metrics",)"
                                                   R"("code":"UNAUTHENTICATED","refusals":1)"));
  clock.Advance(absl::Seconds(10));
  refuse("ipv4:10.0.0.1:4712", "/sd");
  EXPECT_THAT(audit->Read("")->lines.back(), HasSubstr(R"("method":"GET /sd","code":"UNAUTHENTICATED","refusals":3)"));
  for (int host = 0; host < 2 * limits::kAuditLinesAtOnce; ++host) refuse(absl::StrCat("unix:", host), "/metrics");
  const size_t at_once = audit->Read("")->lines.size();
  EXPECT_LE(at_once, static_cast<size_t>(limits::kAuditLinesAtOnce + 2));
  clock.Advance(limits::kAuditLineInterval);
  refuse("unix:1000", "/metrics");
  EXPECT_THAT(audit->Read("")->lines, SizeIs(at_once));
  clock.Advance(limits::kSlowLineInterval);
  refuse("unix:1001", "/metrics");
  ASSERT_THAT(audit->Read("")->lines, SizeIs(at_once + 1));
  EXPECT_THAT(audit->Read("")->lines.back(), HasSubstr(R"("left_out":)"));
  std::filesystem::remove_all(folder);
}

TEST(CancelledCalls, ReportsAConnectionWithTooManyOnce) {
  CancelledCalls calls(2, absl::Seconds(10));
  EXPECT_FALSE(calls.Count("a", absl::Seconds(1)));
  EXPECT_FALSE(calls.Count("a", absl::Seconds(1)));
  EXPECT_FALSE(calls.Count("b", absl::Seconds(1)));
  EXPECT_TRUE(calls.Count("a", absl::Seconds(2)));
  EXPECT_FALSE(calls.Count("a", absl::Seconds(2)));
  EXPECT_FALSE(calls.Count("a", absl::Seconds(20))) << "a new window";
}

class CallGateTest : public RunningServer {
 protected:
  absl::Status CallRaw(const std::string& method, const std::string& bytes,
                       grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    SetDeadline(&context);
    context.set_compression_algorithm(compression);
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    Waited<grpc::Status> status;
    stub.UnaryCall(&context, method, {}, &request, &response, status.Take());
    return FromGrpc(*status.Get());
  }
};

TEST_F(CallGateTest, EveryMethodNamesBytesThatAreNoMessageOfIt) {
  int methods = 0;
  for (const auto* method : ContractMethods()) {
    if (method->client_streaming()) continue;
    ++methods;
    const absl::Status refused = CallRaw(GrpcPath(*method), "\x0a\x7f");
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << method->full_name();
    EXPECT_THAT(std::string(refused.message()), HasSubstr("no message of this method"));
  }
  EXPECT_GT(methods, 45);
}

TEST_F(CallGateTest, MeasuresWhatARequestTakesBeforeItIsParsed) {
  std::string tensors;
  for (int i = 0; i < 4'000'000; ++i) tensors.append({0x2a, 0});
  const absl::Status refused = CallRaw("/inference.GRPCInferenceService/ModelInfer", tensors);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("once it is parsed"));
}

TEST_F(CallGateTest, RefusesCompressedRequests) {
  const absl::Status refused =
      CallRaw("/chainfleet.v1.JobService/GetJob", std::string("\x0a\x7e") + std::string(126, 'x'), GRPC_COMPRESS_GZIP);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented) << refused;
}

class CallGateTokenTest : public RunningServer {
 protected:
  CallGateTokenTest() : RunningServer(GivenTokens{{"secret", "default"}}) {}
};

TEST_F(CallGateTokenTest, CountsRefusedTokens) {
  const auto metrics = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(GetJob("a").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Scrape(*metrics), HasSubstr("chainfleet_tokens_refused_total 1"));
}

class CallGateTurnsTest : public RunningServer {
 protected:
  CallGateTurnsTest() : RunningServer(GivenTokens{{"token-a", "a"}, {"token-b", "b"}}) {}

  // A call of tenant a.
  template <typename Request, typename Response>
  struct AsyncCall {
    AsyncCall() { SetDeadline(&context); }
    grpc::ClientContext context;
    Request request;
    Response response;
    Waited<grpc::Status> status;
  };
  using JobCreation = AsyncCall<v1::CreateJobRequest, v1::Job>;

  void Send(const v1::JobSpec& spec, std::vector<JobCreation>* changes) {
    token_ = "token-a";
    for (JobCreation& call : *changes) {
      SendToken(&call.context);
      *call.request.mutable_spec() = spec;
      jobs_->async()->CreateJob(&call.context, &call.request, &call.response, call.status.Take());
    }
  }
  // Makes a call that takes a turn of changes and waits for nothing else.
  absl::Status CheckJob(const std::string& token) {
    token_ = token;
    v1::CreateJobRequest request;
    *request.mutable_spec() = GaussianJob("job");
    request.set_validate_only(true);
    return Call(*jobs_, &v1::JobService::Stub::CreateJob, request).status();
  }
  absl::Status ListJobs(const std::string& token) {
    token_ = token;
    return Call(*jobs_, &v1::JobService::Stub::ListJobs, v1::ListJobsRequest()).status();
  }
};

TEST_F(CallGateTurnsTest, ReadsOfOneTenantWaitForEachOtherAndNotForThoseOfAnother) {
  token_ = "token-a";
  const auto job = CreateJob(GaussianJob("job"));
  ASSERT_TRUE(job.ok()) << job.status();
  Waited<bool> all_held, open;
  const auto opening = open.Take();
  state_->AfterSegmentsAreRead([&open, hold = all_held.Take(), reads = std::make_shared<std::atomic<int>>(0)] {
    if (++*reads == limits::kTenantTurns) hold(true);
    open.Get();
  });
  std::vector<AsyncCall<v1::ListSegmentsRequest, v1::ListSegmentsResponse>> held(limits::kTenantTurns);
  for (auto& call : held) {
    SendToken(&call.context);
    call.request.set_job(job->id());
    jobs_->async()->ListSegments(&call.context, &call.request, &call.response, call.status.Take());
  }
  all_held.Get();
  AsyncCall<v1::ListJobsRequest, v1::ListJobsResponse> next;
  SendToken(&next.context);
  std::atomic<bool> answered = false;
  jobs_->async()->ListJobs(&next.context, &next.request, &next.response,
                           [&answered, take = next.status.Take()](const grpc::Status& status) {
                             answered = true;
                             take(status);
                           });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ListJobs("token-b").ok());
  EXPECT_FALSE(answered) << "four reads of its tenant have their turns";
  using Inference = inference::GRPCInferenceService;
  const auto probes = Inference::NewStub(channel_);
  EXPECT_TRUE(Call(*probes, &Inference::Stub::ServerLive, inference::ServerLiveRequest()).ok()) << "probes never wait";
  opening(true);
  EXPECT_TRUE(next.status.Get()->ok());
  for (auto& call : held) EXPECT_TRUE(call.status.Get()->ok());
}

TEST_F(CallGateTurnsTest, ChangesOfOneTenantWaitForEachOtherAndNotForThoseOfAnother) {
  std::vector<JobCreation> changes(2 * limits::kTenantTurns);
  {
    HeldStore held(state_.get());
    Send(GaussianJob("job"), &changes);
    held.AwaitCall();
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(CheckJob("token-b").ok());
    EXPECT_TRUE(ListJobs("token-a").ok()) << "reads do not wait for changes";
  }
  for (JobCreation& call : changes) EXPECT_TRUE(call.status.Get()->ok());
  EXPECT_THAT(state_->group_sizes(), Each(Le(limits::kTenantTurns))) << "more changes waited for the store at a time";
}

TEST_F(CallGateTurnsTest, CancelledChangesGiveUpTheirTurnsAndTheirPlacesInTheQueue) {
  std::vector<JobCreation> changes(2 * limits::kTenantTurns);
  HeldStore held(state_.get());
  Send(GaussianJob("job"), &changes);
  held.AwaitCall();
  for (JobCreation& call : changes) call.context.TryCancel();
  for (JobCreation& call : changes) EXPECT_EQ(call.status.Get()->error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(CheckJob("token-a").ok()) << "the store is still held";
}

TEST_F(CallGateTurnsTest, AChangeThatWaitsForAFileHasNoTurn) {
  dataset_roots_.AddFolder(folder_);
  Waited<bool> open;
  ASSERT_TRUE(dataset_reads_.Schedule("", [open]() mutable { open.Get(); }).ok());
  std::vector<JobCreation> changes(limits::kTenantTurns);
  v1::JobSpec spec = SoftmaxJob("job");
  spec.mutable_init()->add_weights("file://" + folder_ + "/gone");
  Send(spec, &changes);
  for (int i = 0; i < 100'000 && dataset_reads_.unfinished() <= changes.size(); ++i) {
    EXPECT_TRUE(ListJobs("token-a").ok());
  }
  ASSERT_EQ(dataset_reads_.unfinished(), 1 + changes.size());
  EXPECT_TRUE(CheckJob("token-a").ok());
  open.Take()(true);
  for (JobCreation& call : changes) EXPECT_EQ(call.status.Get()->error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace chainfleet
