// How calls are let in: the bounds by themselves, and the gate of a real server.
#include "server/rpc/call_gate.h"

#include <grpcpp/generic/generic_stub.h>

#include <string>
#include <vector>

#include "inference/grpc_service.pb.h"
#include "server/rpc/bytes_in_flight.h"
#include "server/rpc/call_limits.h"
#include "server/rpc/cancelled_calls.h"
#include "server/rpc/receiving_calls.h"
#include "server/rpc/refused_peers.h"
#include "tests/server/rpc/running_server.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

class ReceivingCallsTest : public testing::Test {
 protected:
  uint64_t Begin(const std::string& connection, int name, absl::Duration now = absl::ZeroDuration()) {
    return receiving_.Begin(connection, now, [this, name](const absl::Status& why) {
      EXPECT_FALSE(why.ok());
      cancelled_.push_back(name);
    });
  }

  ReceivingCalls receiving_{3, 100};
  std::vector<int> cancelled_;
};

TEST_F(ReceivingCallsTest, OfSlowCallsTheConnectionWithTheMostLosesItsOldest) {
  const uint64_t other = Begin("other", 0);
  const uint64_t first = Begin("many", 1);
  std::vector<uint64_t> left = {other, Begin("many", 2), Begin("many", 3)};
  EXPECT_EQ(receiving_.Watch(absl::ZeroDuration()), 4u) << "they have just begun";
  EXPECT_EQ(receiving_.Watch(absl::ZeroDuration()), 3u);
  EXPECT_THAT(cancelled_, ElementsAre(1));
  EXPECT_EQ(ReasonOf(receiving_.End(first)), "QUEUE_FULL");
  for (const uint64_t id : left) EXPECT_TRUE(receiving_.End(id).ok());
  Begin("many", 4);
  receiving_.Watch(absl::ZeroDuration());
  receiving_.Watch(absl::ZeroDuration());
  EXPECT_THAT(cancelled_, ElementsAre(1)) << "there is room again";
}

TEST_F(ReceivingCallsTest, NoneOfABurstIsLost) {
  for (int watches = 0; watches < 3; ++watches) {
    std::vector<uint64_t> burst;
    for (int i = 0; i < 100; ++i) burst.push_back(Begin("fleet", i));
    EXPECT_EQ(receiving_.Watch(absl::ZeroDuration()), 100u);
    for (const uint64_t id : burst) EXPECT_TRUE(receiving_.End(id).ok());
  }
  EXPECT_THAT(cancelled_, ElementsAre());
}

TEST_F(ReceivingCallsTest, HasABoundOfAllThatBegin) {
  const uint64_t other = Begin("other", 0);
  for (int i = 1; i <= 100; ++i) Begin("many", i);
  EXPECT_THAT(cancelled_, SizeIs(51));
  EXPECT_THAT(cancelled_, Each(Gt(0)));
  EXPECT_TRUE(receiving_.End(other).ok());
  EXPECT_EQ(receiving_.Watch(absl::ZeroDuration()), 49u);
}

TEST_F(ReceivingCallsTest, CancelsThoseThatTakeTooLong) {
  const uint64_t late = Begin("a", 1, absl::Seconds(1));
  const uint64_t young = Begin("a", 2, absl::Seconds(3));
  EXPECT_EQ(receiving_.Watch(absl::Seconds(2)), 1u);
  EXPECT_THAT(cancelled_, ElementsAre(1));
  EXPECT_EQ(receiving_.End(late).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(receiving_.End(young).ok());
}

TEST(BytesInFlight, HasABudgetForEachConnectionAndForAll) {
  BytesInFlight bytes(10 * limits::kMiB, 6 * limits::kMiB);
  auto first = bytes.Hold("a", 4 * limits::kMiB);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(bytes.Hold("a", 4 * limits::kMiB), nullptr) << "of one connection";
  auto second = bytes.Hold("b", 5 * limits::kMiB);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(bytes.Hold("c", 2 * limits::kMiB), nullptr) << "of all";
  EXPECT_NE(bytes.Hold("c", limits::kFreeBytes), nullptr) << "small ones are not counted";
  EXPECT_EQ(bytes.held_bytes(), 9 * limits::kMiB);
  first.reset();
  second.reset();
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

TEST(RefusedPeers, AreTheHostsOfPeers) {
  EXPECT_EQ(HostOf("ipv4:10.0.0.1:4711"), "ipv4:10.0.0.1");
  EXPECT_EQ(HostOf("ipv6:%5B::1%5D:4711"), "ipv6:%5B::1%5D");
  EXPECT_EQ(HostOf("unix:/run/socket"), "unix:/run/socket");
}

TEST(CancelledCalls, TellsOnceOfAConnectionWithTooMany) {
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
  for (const char* name : {"chainfleet.v1.JobService", "chainfleet.v1.PredictService", "chainfleet.v1.WorkerService",
                           "inference.GRPCInferenceService"}) {
    const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    ASSERT_NE(service, nullptr) << name;
    for (int i = 0; i < service->method_count(); ++i) {
      if (service->method(i)->client_streaming()) continue;
      ++methods;
      const absl::Status refused = CallRaw(std::string("/") + name + "/" + service->method(i)->name(), "\x0a\x7f");
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << service->method(i)->full_name();
      EXPECT_THAT(std::string(refused.message()), HasSubstr("no message of this method"));
    }
  }
  EXPECT_GT(methods, 35);
}

TEST_F(CallGateTest, RefusesCompressedRequests) {
  const absl::Status refused =
      CallRaw("/chainfleet.v1.JobService/GetJob", std::string("\x0a\x7e") + std::string(126, 'x'), GRPC_COMPRESS_GZIP);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented) << refused;
}

class CallGateTokenTest : public RunningServer {
 protected:
  CallGateTokenTest() : RunningServer({{"secret", {"default"}}}) {}
};

TEST_F(CallGateTokenTest, CountsRefusedTokens) {
  const auto metrics = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(GetJob("a").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Scrape(*metrics), HasSubstr("chainfleet_tokens_refused_total 1"));
}

}  // namespace
}  // namespace chainfleet
