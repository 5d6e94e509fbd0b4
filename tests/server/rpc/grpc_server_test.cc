#include "server/rpc/grpc_server.h"

#include <grpcpp/generic/generic_stub.h>

#include <string>

#include "core/base/limits.h"
#include "tests/server/rpc/running_server.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

class GrpcServerTest : public RunningServer {
 protected:
  explicit GrpcServerTest(GivenTokens tokens = {}) : RunningServer(std::move(tokens)) {}
  // Makes a unary call of any method with any bytes, and returns the reply's bytes. Enough protobuf for health and
  // reflection.
  absl::StatusOr<std::string> CallRaw(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    Waited<grpc::Status> status;
    stub.UnaryCall(&context, method, {}, &request, &response, status.Take());
    const auto got = status.Get();
    if (!got->ok()) return FromGrpc(*got);
    std::vector<grpc::Slice> slices;
    std::string out;
    if (!response.Dump(&slices).ok()) return out;
    for (const grpc::Slice& piece : slices) out.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
    return out;
  }
};

TEST_F(GrpcServerTest, RefusesATakenPortClearly) {
  const auto second = StartOn(address());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(second.status()), "PORT_TAKEN");
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address()));
}

TEST_F(GrpcServerTest, RefusesAnAddressThatIsNone) { EXPECT_FALSE(StartOn("nonsense:port").ok()); }

TEST_F(GrpcServerTest, IsHealthy) {
  const auto reply = CallRaw("/grpc.health.v1.Health/Check", "");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(*reply, std::string("\x08\x01", 2));  // status: SERVING
}

TEST_F(GrpcServerTest, DescribesItsServicesByReflection) {
  const auto reply =
      CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", std::string("\x3a\x00", 2));
  ASSERT_TRUE(reply.ok()) << reply.status();
  for (const char* service : {"JobService", "WorkerService", "PredictService"}) {
    EXPECT_THAT(*reply, HasSubstr(std::string("chainfleet.v1.") + service));
  }
}

class GrpcServerWithTokens : public GrpcServerTest {
 protected:
  GrpcServerWithTokens() : GrpcServerTest({{"operator", "default", Role::kOperator}}) {}
};

// The library's reflection service cannot ask for a token.
TEST_F(GrpcServerWithTokens, TellsNobodyItsContractsByReflection) {
  const std::string list = std::string("\x3a\x00", 2);
  const auto reflect = [&] { return CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", list); };
  EXPECT_TRUE(absl::IsUnimplemented(reflect().status()));
  token_ = "operator";
  EXPECT_TRUE(absl::IsUnimplemented(reflect().status()));
}

TEST_F(GrpcServerTest, RefusesMessagesOverTheLimit) {
  v1::PredictRequest request;
  request.mutable_inputs()->set_data(std::string(limits::kMaxMessageBytes + 1, 'x'));
  EXPECT_EQ(Call(*predictions_, &v1::PredictService::Stub::Predict, request).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(GrpcServerTest, CountsCallsByMethodAndCodeButNotNamesThatClientsMakeUp) {
  const auto metrics = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  ASSERT_FALSE(GetJob("nobody").ok());
  EXPECT_EQ(CallRaw("/made.up/Name", "").status().code(), absl::StatusCode::kUnimplemented);
  const std::string scrape = Scrape(*metrics);
  EXPECT_THAT(scrape, HasSubstr("method=\"/chainfleet.v1.JobService/GetJob\""));
  EXPECT_THAT(scrape, HasSubstr("code=\"NOT_FOUND\""));
  EXPECT_THAT(scrape, testing::Not(HasSubstr("made.up")));
}

TEST_F(GrpcServerTest, ShutdownEndsCallsOfEveryKindAndReturns) {
  ASSERT_TRUE(CreateJob(GaussianJob("a")).ok());
  grpc::ClientContext watch_context, shards_context, put_context;
  for (auto* context : {&watch_context, &shards_context, &put_context}) SetDeadline(context);
  v1::WatchJobRequest request;
  request.set_name("a");
  const auto watch = jobs_->WatchJob(&watch_context, request);
  v1::Job job;
  ASSERT_TRUE(watch->Read(&job));
  const auto shards = workers_->ServeShards(&shards_context);
  v1::ShardUpdate hello;
  hello.mutable_hello()->set_worker("w1");
  hello.mutable_hello()->set_protocol_version(kProtocolVersion);
  shards->Write(hello);
  v1::PutBlobReply reply;
  const auto put = workers_->PutBlob(&put_context, &reply);  // nothing sent yet
  const absl::Duration before = clock_.Monotonic();
  server_->Shutdown(absl::Milliseconds(300));
  EXPECT_LT(clock_.Monotonic() - before, absl::Seconds(10));
  while (watch->Read(&job)) {
  }
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << "a watcher comes back";
  EXPECT_FALSE(shards->Finish().ok());
  EXPECT_FALSE(put->Finish().ok());
}

TEST_F(GrpcServerTest, NeitherCancelledNorOpenWatchesHoldAShutdownBack) {
  ASSERT_TRUE(CreateJob(GaussianJob("a")).ok());
  v1::WatchJobRequest request;
  request.set_name("a");
  v1::Job job;
  for (int i = 0; i < 8; ++i) {
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto watch = jobs_->WatchJob(&context, request);
    ASSERT_TRUE(watch->Read(&job));
    context.TryCancel();
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto open = jobs_->WatchJob(&context, request);
  ASSERT_TRUE(open->Read(&job));
  const absl::Duration before = clock_.Monotonic();
  server_->Shutdown(absl::Seconds(15));
  EXPECT_LT(clock_.Monotonic() - before, absl::Seconds(10));
  EXPECT_FALSE(open->Read(&job));
  const absl::Status ended = FromGrpc(open->Finish());
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("watch again"));
}

}  // namespace
}  // namespace chainfleet
