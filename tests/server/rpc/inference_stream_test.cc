#include "server/rpc/inference_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/thread_pool.h"
#include "core/wire/grpc_status.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {
namespace {

constexpr int kRequests = 40;

// The server counts such a request twice: its bytes, and the message that is parsed from them.
inference::ModelInferRequest RequestOfBytes(size_t bytes) {
  inference::ModelInferRequest request;
  request.add_raw_input_contents(std::string(bytes, 'x'));
  return request;
}

// Keeps every request's answer until the test gives it.
class KeptAnswers final : public StreamedService<inference::GRPCInferenceService::CallbackService> {
 public:
  // All streams are those of `tenant`.
  explicit KeptAnswers(const std::string& tenant) {
    TakeStream<inference::ModelStreamInferResponse>(
        "/inference.GRPCInferenceService/ModelStreamInfer", [this, tenant](Context* context) {
          const auto still = [this] { return is_revoked_ ? absl::UnauthenticatedError("revoked") : absl::OkStatus(); };
          return streams_.Open(*context, ClientDeadline(*context, clock_), tenant, still,
                               [this](const inference::ModelInferRequest&, const auto& answer) { Keep(answer); });
        });
  }

  // All streams lose their callers' rights.
  void Revoke() { is_revoked_ = true; }
  // Waits until `number` requests are not answered.
  void AwaitKept(size_t number) {
    const MutexLock lock(&mutex_);
    while (kept_.size() < number) changed_.Wait(&mutex_);
  }
  void AnswerOldest() {
    std::shared_ptr<StreamedAnswer> answer;
    {
      const MutexLock lock(&mutex_);
      answer = kept_.front();
      kept_.pop_front();
    }
    answer->Succeed({});
  }
  void AnswerNewest(inference::ModelInferResponse response) {
    std::shared_ptr<StreamedAnswer> answer;
    {
      const MutexLock lock(&mutex_);
      answer = kept_.back();
      kept_.pop_back();
    }
    answer->Succeed(std::move(response));
  }
  // Answers none of the kept requests.
  void DropKept() {
    std::deque<std::shared_ptr<StreamedAnswer>> dropped;  // destroyed after the lock is released
    const MutexLock lock(&mutex_);
    dropped.swap(kept_);
  }
  // Bytes of the requests and answers in flight, except small ones.
  int64_t held_bytes() const { return bytes_.held_bytes(); }
  void AwaitCancelled(size_t number) {
    const MutexLock lock(&mutex_);
    while (cancelled_ < number) changed_.Wait(&mutex_);
  }
  size_t most() {
    const MutexLock lock(&mutex_);
    return most_;
  }

 private:
  void Keep(const std::shared_ptr<StreamedAnswer>& answer) {
    answer->OnCancelled([this] { Count(&cancelled_); });
    const MutexLock lock(&mutex_);
    kept_.push_back(answer);
    most_ = std::max(most_, kept_.size());
    changed_.SignalAll();
  }
  void Count(size_t* number) {
    const MutexLock lock(&mutex_);
    ++*number;
    changed_.SignalAll();
  }

  SystemClock clock_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<StreamedAnswer>> kept_ CHAINFLEET_GUARDED_BY(mutex_);
  size_t most_ CHAINFLEET_GUARDED_BY(mutex_) = 0, cancelled_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  BytesInFlight bytes_{2 << 20};
  std::atomic<bool> is_revoked_ = false;
  InferenceStreams streams_{&bytes_, &threads_};
  ThreadPool threads_{1};  // ends before what its tasks use
};

TEST(StreamedRequest, KeepsNothingOfAMessageThatItRefuses) {
  inference::ModelInferRequest message;
  StreamedRequest request(&message);
  inference::ModelInferRequest many;
  for (int i = 0; i < 20'000; ++i) many.add_inputs();
  for (const std::string& bytes : {many.SerializeAsString(), many.SerializeAsString() + "\x0a", std::string("\x0a")}) {
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer wire(&slice, 1);
    request.Read(&wire);
    EXPECT_FALSE(request.status().ok());
    EXPECT_FALSE(wire.Valid()) << "gRPC frees no bytes that it has given to its reader";
    EXPECT_EQ(message.inputs_size(), 0);
  }
}

class StreamBoundTest : public ::testing::Test {
 protected:
  StreamBoundTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = Connect();
    stream_ = stub_->ModelStreamInfer(&context_);
  }
  ~StreamBoundTest() override {
    context_.TryCancel();
    server_->Shutdown(gpr_inf_past(GPR_CLOCK_REALTIME));
  }
  void Send(int requests) {
    for (int i = 0; i < requests; ++i) ASSERT_TRUE(stream_->Write({}));
  }
  // Each stub has a connection of its own.
  std::unique_ptr<inference::GRPCInferenceService::Stub> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // no window grows unless the test reads
    return inference::GRPCInferenceService::NewStub(
        grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials(), arguments));
  }

  KeptAnswers service_{"bank"};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<inference::ModelInferRequest, inference::ModelStreamInferResponse>> stream_;
};

TEST_F(StreamBoundTest, ReadsNoFurtherRequestWhileTheMostAreUnanswered) {
  Send(kRequests);
  for (int answered = 0; answered < kRequests; ++answered) {
    service_.AwaitKept(std::min(limits::kStreamRequests, static_cast<size_t>(kRequests - answered)));
    service_.AnswerOldest();
    inference::ModelStreamInferResponse response;
    ASSERT_TRUE(stream_->Read(&response));
  }
  EXPECT_EQ(service_.most(), limits::kStreamRequests);
}

TEST_F(StreamBoundTest, CancelsWhatAClientThatIsGoneHasAsked) {
  Send(3);
  service_.AwaitKept(3);
  context_.TryCancel();
  service_.AwaitCancelled(3);
}

TEST_F(StreamBoundTest, ACancelledStreamLeavesItsRoomToAnotherConnection) {
  const inference::ModelInferRequest request = RequestOfBytes(400 << 10);
  ASSERT_TRUE(stream_->Write(request));
  service_.AwaitKept(1);
  const auto other_stub = Connect();
  grpc::ClientContext other_context;
  const auto other = other_stub->ModelStreamInfer(&other_context);
  ASSERT_TRUE(other->Write(request));
  inference::ModelStreamInferResponse response;
  ASSERT_TRUE(other->Read(&response));
  EXPECT_THAT(response.error_message(), testing::HasSubstr("leave no room for this request"));
  context_.TryCancel();
  service_.AwaitCancelled(1);
  service_.AnswerOldest();  // the batcher, too, answers requests that it cancels
  ASSERT_EQ(service_.held_bytes(), 0);
  ASSERT_TRUE(other->Write(request));
  service_.AwaitKept(1);
  other_context.TryCancel();
}

TEST_F(StreamBoundTest, ACancelledStreamKeepsNoRoomForAnswersThatNobodyReads) {
  ASSERT_TRUE(stream_->Write(RequestOfBytes(300 << 10)));
  Send(1);
  service_.AwaitKept(2);
  const int64_t of_request = service_.held_bytes();
  EXPECT_GT(of_request, 0);
  inference::ModelInferResponse answer;
  answer.add_raw_output_contents(std::string(100 << 10, 'x'));
  service_.AnswerNewest(std::move(answer));
  EXPECT_GT(service_.held_bytes(), of_request) << "it waits for the answer to the first request";
  context_.TryCancel();
  service_.AwaitCancelled(1);
  service_.DropKept();
  server_->Shutdown(gpr_inf_past(GPR_CLOCK_REALTIME));  // returns after the stream has ended
  EXPECT_EQ(service_.held_bytes(), 0);
}

TEST_F(StreamBoundTest, ARevokedStreamEndsAlthoughItsClientDoesNotRead) {
  Send(1);
  service_.AwaitKept(1);
  inference::ModelInferResponse answer;
  answer.add_raw_output_contents(std::string(400 << 10, 'x'));
  service_.AnswerNewest(std::move(answer));
  ASSERT_GT(service_.held_bytes(), 0) << "the answer is larger than the client's window";
  service_.Revoke();
  while (service_.held_bytes() > 0) continue;
}

TEST_F(StreamBoundTest, RefusesARequestThatIsLargeOnceItIsParsed) {
  inference::ModelInferRequest empty_tensors;
  for (int i = 0; i < 20'000; ++i) empty_tensors.add_inputs();
  empty_tensors.set_id("seven");
  ASSERT_LT(2 * empty_tensors.ByteSizeLong(), size_t{1} << 20) << "its bytes alone have room";
  ASSERT_TRUE(stream_->Write(empty_tensors));
  inference::ModelStreamInferResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_THAT(response.error_message(), testing::HasSubstr("once it is parsed"));
  EXPECT_EQ(response.infer_response().id(), "seven");
  Send(1);
  service_.AwaitKept(1);
}

TEST_F(StreamBoundTest, ATenantHasHalfOfTheStreams) {
  std::deque<grpc::ClientContext> contexts;
  std::deque<decltype(stream_)> streams;
  Send(1);
  for (size_t i = 1; i < limits::kInferenceStreams / 2; ++i) {
    streams.push_back(stub_->ModelStreamInfer(&contexts.emplace_back()));
    ASSERT_TRUE(streams.back()->Write({}));
  }
  service_.AwaitKept(limits::kInferenceStreams / 2);
  auto refused = stub_->ModelStreamInfer(&contexts.emplace_back());
  inference::ModelStreamInferResponse response;
  EXPECT_FALSE(refused->Read(&response));
  EXPECT_EQ(BoundOf(FromGrpc(refused->Finish())), "tenant_inference_streams");
  for (grpc::ClientContext& context : contexts) context.TryCancel();
}

}  // namespace
}  // namespace chainfleet
