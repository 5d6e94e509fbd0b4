// A client that requests predictions and does not read them: the server holds the replies, and other calls are refused.
#include "server/rpc/held_reply.h"

#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/wire/predict_wire.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

constexpr int64_t kRows = 20'000;  // their reply is 1.7 MiB, far more than flow control allows unread

// Returns the same probabilities for every row, until destroyed.
class EvenWorker {
 public:
  explicit EvenWorker(v1::WorkerService::Stub* stub) : stream_(stub->ServeShards(&context_)) {
    v1::ShardUpdate hello;
    hello.mutable_hello()->set_worker("w1");
    hello.mutable_hello()->set_protocol_version(kProtocolVersion);
    stream_->Write(hello);
    thread_ = std::thread([this] {
      v1::ShardOrder order;
      while (stream_->Read(&order)) {
        if (order.has_shard()) stream_->Write(Answer(order.shard()));
      }
    });
  }
  ~EvenWorker() {
    context_.TryCancel();
    thread_.join();
  }

 private:
  static v1::ShardUpdate Answer(const v1::ShardRequest& shard) {
    const auto rows = static_cast<size_t>(shard.inputs().shape(0));
    ShardResult result;
    result.shard_id = shard.shard_id();
    PartialPrediction& sum = result.partials.emplace_back();
    sum.chain = {shard.chains(0).chain().job(), shard.chains(0).chain().index()};
    sum.num_draws = 1;
    sum.num_rows = shard.inputs().shape(0);
    sum.sum_w = sum.sum_w2 = 1;
    const std::vector<double> quarters(3 * rows, 0.25);
    sum.sums = ClassSums{.num_classes = 3,
                         .sum_wp = quarters,
                         .sum_wp2 = quarters,
                         .sum_wh = std::vector<double>(rows, 1),
                         .votes = quarters};
    v1::ShardUpdate update;
    update.mutable_result()->set_shard_id(shard.shard_id());
    update.mutable_result()->set_data(ToProto(result).SerializeAsString());
    update.mutable_result()->set_last(true);
    return update;
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ShardUpdate, v1::ShardOrder>> stream_;
  std::thread thread_;
};

// A call whose reply the client never reads, so that the transport takes no more than one window of it.
class UnreadCall {
 public:
  UnreadCall(const std::string& address, const std::string& method, const std::string& request)
      : stub_(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), OneWindow())),
        call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(this);
    Next();
    const grpc::Slice slice(request);
    call_->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), this);
    Next();
  }
  ~UnreadCall() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, this);
    Next();
  }

 private:
  static grpc::ChannelArguments OneWindow() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65535);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
  }
  void Next() {
    void* tag;
    bool ok;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

class HeldReplyTest : public ServerWithJob {
 protected:
  v1::PredictRequest ManyRows() const {
    v1::PredictRequest request;
    request.set_job("softmax");
    request.mutable_inputs()->set_type(v1::UINT8);
    for (const int64_t size : {kRows, int64_t{1}, int64_t{2}, int64_t{2}}) request.mutable_inputs()->add_shape(size);
    request.mutable_inputs()->set_data(std::string(4 * kRows, '\x40'));
    return request;
  }
  absl::StatusOr<v1::PredictResponse> Predict() {
    return Call(*predictions_, &v1::PredictService::Stub::Predict, ManyRows());
  }
  inference::ModelInferRequest SameRows() const {
    inference::ModelInferRequest request;
    request.set_model_name("softmax");
    auto* input = request.add_inputs();
    input->set_name("x");
    input->set_datatype("UINT8");
    for (const int64_t size : {kRows, int64_t{1}, int64_t{2}, int64_t{2}}) input->add_shape(size);
    request.add_raw_input_contents(std::string(4 * kRows, '\x40'));
    return request;
  }
  absl::Status Infer() {
    const auto models = inference::GRPCInferenceService::NewStub(channel_);
    return Call(*models, &inference::GRPCInferenceService::Stub::ModelInfer, SameRows()).status();
  }
  void WaitForWorker() {
    while (shards_.Workers().empty()) ARoundTrip();
  }
  void ARoundTrip() { Call(*jobs_, &v1::JobService::Stub::GetServerInfo, v1::GetServerInfoRequest()).IgnoreError(); }
};

TEST_F(HeldReplyTest, AnUnreadReplyIsHeldUntilItsCallEndsAndOthersMustWait) {
  CommitADraw();
  EvenWorker worker(workers_.get());
  WaitForWorker();
  const auto answer = Predict();
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto bytes = 2 * static_cast<int64_t>(answer->ByteSizeLong());
  while (reply_budget_.held_bytes() > 0) ARoundTrip();  // replies that were read are released
  ByteShare others(reply_budget_);
  const int64_t held = reply_budget_.max_bytes() - bytes * 3 / 2;  // there is room for one answer
  ASSERT_TRUE(others.Add(held));
  for (const bool ours : {true, false}) {
    {
      const std::string method =
          ours ? "/chainfleet.v1.PredictService/Predict" : "/inference.GRPCInferenceService/ModelInfer";
      const UnreadCall unread(address(), method,
                              ours ? ManyRows().SerializeAsString() : SameRows().SerializeAsString());
      while (reply_budget_.held_bytes() == held) ARoundTrip();
      for (const absl::Status& refused : {Predict().status(), Infer()}) {
        EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
        EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
        EXPECT_EQ(BoundOf(refused), "prediction_reply_bytes");
      }
      EXPECT_GT(reply_budget_.held_bytes(), held) << "it is still not read";
    }
    while (reply_budget_.held_bytes() != held) ARoundTrip();
    EXPECT_TRUE(Predict().ok()) << "there is room again";
    while (reply_budget_.held_bytes() != held) ARoundTrip();
    EXPECT_TRUE(Infer().ok());
    while (reply_budget_.held_bytes() != held) ARoundTrip();
  }
}

}  // namespace
}  // namespace chainfleet
