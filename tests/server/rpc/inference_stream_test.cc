#include "server/rpc/inference_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {
namespace {

constexpr int kRequests = 40;

// Keeps every request's answer until the test gives it.
class KeptAnswers final : public inference::GRPCInferenceService::CallbackService {
 public:
  InferenceStreams::Reactor* ModelStreamInfer(grpc::CallbackServerContext* context) override {
    return streams_.Open(*context, ClientDeadline(*context, clock_), absl::OkStatus(),
                         [this](const inference::ModelInferRequest&, const std::shared_ptr<StreamedAnswer>& answer) {
                           answer->OnCancelled([this] { Count(&cancelled_); });
                           const MutexLock lock(&mutex_);
                           kept_.push_back(answer);
                           most_ = std::max(most_, kept_.size());
                           changed_.SignalAll();
                         });
  }

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
  void AwaitCancelled(size_t number) {
    const MutexLock lock(&mutex_);
    while (cancelled_ < number) changed_.Wait(&mutex_);
  }
  size_t most() {
    const MutexLock lock(&mutex_);
    return most_;
  }

 private:
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
  BytesInFlight bytes_{1 << 20, 1 << 20};
  InferenceStreams streams_{&bytes_};
};

class StreamBoundTest : public ::testing::Test {
 protected:
  StreamBoundTest() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stream_ = inference::GRPCInferenceService::NewStub(
                  grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()))
                  ->ModelStreamInfer(&context_);
  }
  ~StreamBoundTest() override {
    context_.TryCancel();
    server_->Shutdown(gpr_inf_past(GPR_CLOCK_REALTIME));
  }
  void Send(int requests) {
    for (int i = 0; i < requests; ++i) ASSERT_TRUE(stream_->Write({}));
  }

  KeptAnswers service_;
  std::unique_ptr<grpc::Server> server_;
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

}  // namespace
}  // namespace chainfleet
