// Tests the Open Inference Protocol over the wire: the readiness of models, and the counts of failed calls.
#include <memory>
#include <string>
#include <vector>

#include "inference/grpc_service.grpc.pb.h"
#include "server/rpc/call_limits.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using Stub = inference::GRPCInferenceService::Stub;

class InferenceServiceTest : public ServerWithJob {
 protected:
  bool IsReady(const std::string& version = "", const std::string& name = "softmax") {
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    const auto ready = Call(*models_, &Stub::ModelReady, request);
    EXPECT_TRUE(ready.ok()) << ready.status();
    return ready.ok() && ready->ready();
  }
  void MakeVersion() {
    v1::CreateSnapshotRequest request;
    request.set_job("softmax");
    ASSERT_TRUE(Call(*jobs_, &v1::JobService::Stub::CreateSnapshot, request).ok());
  }
  // Two rows for a fleet without workers.
  absl::Status Infer(const std::string& version = "", const std::string& output = "", const std::string& tensor = "x") {
    inference::ModelInferRequest request;
    request.set_model_name("softmax");
    request.set_model_version(version);
    auto* input = request.add_inputs();
    input->set_name(tensor);
    input->set_datatype("UINT8");
    for (const int64_t size : {2, 1, 2, 2}) input->add_shape(size);
    request.add_raw_input_contents(std::string(8, '\x40'));
    if (!output.empty()) request.add_outputs()->set_name(output);
    return Call(*models_, &Stub::ModelInfer, request).status();
  }
  std::vector<inference::ModelStatistics> Statistics(const std::string& name) {
    inference::ModelStatisticsRequest request;
    request.set_name(name);
    const auto response = Call(*models_, &Stub::ModelStatistics, request);
    EXPECT_TRUE(response.ok()) << response.status();
    return {response->model_stats().begin(), response->model_stats().end()};
  }

  std::unique_ptr<Stub> models_ = inference::GRPCInferenceService::NewStub(channel_);
};

TEST_F(InferenceServiceTest, AModelIsReadyOnceItHasADrawUntilItIsCancelled) {
  EXPECT_FALSE(IsReady()) << "no draw yet";
  EXPECT_FALSE(IsReady("1"));
  CommitADraw();
  EXPECT_TRUE(IsReady());
  EXPECT_FALSE(IsReady("1")) << "to ask makes no version";
  MakeVersion();
  EXPECT_TRUE(IsReady("1"));
  EXPECT_FALSE(IsReady("2"));
  ASSERT_TRUE(SetIntent(job_, v1::Job::CANCEL).ok());
  EXPECT_FALSE(IsReady());
  EXPECT_FALSE(IsReady("1"));
  EXPECT_FALSE(IsReady("", "nowhere"));
}

// "The scale belongs to the data set: convert rightly or refuse, and say it in ModelMetadata."
TEST_F(InferenceServiceTest, SaysTheScaleOfInputsAndRefusesAnother) {
  CommitADraw();
  MakeVersion();
  inference::ModelMetadataRequest about;
  about.set_name("softmax");
  const auto metadata = Call(*models_, &Stub::ModelMetadata, about);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ(metadata->properties().at("x.scale"), "0.0039215686274509803");
  EXPECT_EQ(metadata->properties().at("x.mean"), "0.5");
  EXPECT_EQ(metadata->properties().at("x.stddev"), "0.25");
  inference::ModelInferRequest request;
  request.set_model_name("softmax");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  for (const int64_t size : {1, 1, 2, 2}) input->add_shape(size);
  const std::vector<float> pixels = {0, 255, 3, 4};
  request.add_raw_input_contents(reinterpret_cast<const char*>(pixels.data()), pixels.size() * sizeof(float));
  const absl::Status refused = Call(*models_, &Stub::ModelInfer, request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("divide by 255"));
}

TEST_F(InferenceServiceTest, IsLiveButNotReadyWithoutAServingWorker) {
  const auto ready = Call(*models_, &Stub::ServerReady, inference::ServerReadyRequest());
  ASSERT_TRUE(ready.ok()) << ready.status();
  EXPECT_FALSE(ready->ready());
  const auto live = Call(*models_, &Stub::ServerLive, inference::ServerLiveRequest());
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_TRUE(live->live());
}

TEST_F(InferenceServiceTest, DrawsOfAChainThatDivergedMakeNoModelReady) {
  CommitADraw(ChainState::kDiverged);
  EXPECT_EQ(GetJob(job_)->num_draws(), 1) << "it is counted";
  EXPECT_FALSE(IsReady());
  EXPECT_EQ(ReasonOf(Infer()), "NO_DRAWS");
}

TEST_F(InferenceServiceTest, AJobThatCalibratesASamplerIsNoModelThatIsReady) {
  ASSERT_TRUE(SetIntent(job_, v1::Job::CANCEL).ok());
  v1::JobSpec spec = SoftmaxJob("calibration");
  spec.set_kind("sbc");
  spec.mutable_prior()->mutable_gaussian()->set_precision(1);
  const auto job = CreateJob(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  CommitADraw();
  EXPECT_FALSE(IsReady("", "calibration"));
  const auto index = Call(*models_, &Stub::RepositoryIndex, inference::RepositoryIndexRequest());
  ASSERT_TRUE(index.ok()) << index.status();
  for (const auto& model : index->models()) {
    EXPECT_EQ(testing::Value(model.reason(), testing::HasSubstr("kind: sbc")), model.name() == job->id());
  }
  inference::RepositoryIndexRequest ready;
  ready.set_ready(true);
  EXPECT_EQ(Call(*models_, &Stub::RepositoryIndex, ready)->models_size(), 0);
}

TEST_F(InferenceServiceTest, CorruptDrawsMakeNoModelReady) {
  CommitADraw();
  MakeVersion();
  EXPECT_TRUE(IsReady() && IsReady("1"));
  Waited<absl::StatusOr<bool>> marked;
  versions_.MarkCorrupt(job_, state_->ListSegments({.job = job_})->at(0).segment.object.name, marked.Take());
  ASSERT_TRUE(marked.Get()->ok());
  EXPECT_FALSE(IsReady());
  EXPECT_FALSE(IsReady("1"));
}

TEST_F(InferenceServiceTest, EveryRefusalCountsUnderTheNewestVersionAndTheNameThatWasAsked) {
  CommitADraw();
  MakeVersion();
  EXPECT_EQ(ReasonOf(Infer()), "NO_SERVING_WORKER");
  EXPECT_TRUE(absl::IsInvalidArgument(Infer("", "logits")));
  EXPECT_TRUE(absl::IsInvalidArgument(Infer("", "", "y")));
  EXPECT_TRUE(absl::IsInvalidArgument(Infer("1", "", "y")));
  v1::PredictRequest predict;
  predict.set_job("softmax");
  EXPECT_FALSE(Call(*predictions_, &v1::PredictService::Stub::Predict, predict).ok());
  for (const std::string& name : {std::string("softmax"), job_, std::string()}) {
    const std::vector<inference::ModelStatistics> statistics = Statistics(name);
    ASSERT_THAT(statistics, SizeIs(1)) << name;
    EXPECT_EQ(statistics[0].name(), name.empty() ? job_ : name);
    EXPECT_EQ(statistics[0].version(), "1");
    EXPECT_EQ(statistics[0].inference_stats().fail().count(), 5u);
    EXPECT_EQ(statistics[0].inference_stats().success().count(), 0u);
    EXPECT_EQ(statistics[0].inference_count(), 0u);
  }
}

TEST_F(InferenceServiceTest, AVersionThatNobodyAskedForIsCountedAsZero) {
  CommitADraw();
  MakeVersion();
  EXPECT_THAT(Statistics(""), SizeIs(0)) << "of all models, those that were asked";
  inference::ModelStatisticsRequest unknown;
  unknown.set_name("nobody");
  inference::ModelStatisticsResponse none;
  grpc::ClientContext context;
  EXPECT_EQ(models_->ModelStatistics(&context, unknown, &none).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const std::vector<inference::ModelStatistics> unasked = Statistics("softmax");
  ASSERT_THAT(unasked, SizeIs(1));
  EXPECT_EQ(unasked[0].version(), "1");
  EXPECT_EQ(unasked[0].last_inference(), 0u);
  EXPECT_EQ(unasked[0].inference_stats().success().count() + unasked[0].inference_stats().fail().count(), 0u);
}

TEST_F(InferenceServiceTest, StatisticsOfAnAliasBearItsName) {
  CommitADraw();
  MakeVersion();
  v1::SetAliasRequest request;
  request.set_name("champion");
  request.set_job("softmax");
  ASSERT_TRUE(Call(*jobs_, &v1::JobService::Stub::SetAlias, request).ok());
  EXPECT_FALSE(Infer().ok());
  const std::vector<inference::ModelStatistics> statistics = Statistics("champion");
  ASSERT_THAT(statistics, SizeIs(1));
  EXPECT_EQ(statistics[0].name(), "champion");
}

// Two rows, with an id; without workers they wait as long as the stream lasts.
inference::ModelInferRequest Streamed(const std::string& id, const std::string& model = "softmax") {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  request.set_id(id);
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("UINT8");
  for (const int64_t size : {2, 1, 2, 2}) input->add_shape(size);
  request.add_raw_input_contents(std::string(8, '\x40'));
  return request;
}

class InferenceStreamTest : public InferenceServiceTest {
 protected:
  using Stream = grpc::ClientReaderWriter<inference::ModelInferRequest, inference::ModelStreamInferResponse>;
  struct Opened {
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;
  };
  std::unique_ptr<Opened> Open() {
    auto opened = std::make_unique<Opened>();
    SetDeadline(&opened->context);
    SendToken(&opened->context);
    opened->stream = models_->ModelStreamInfer(&opened->context);
    return opened;
  }
};

TEST_F(InferenceStreamTest, SaysWhichRequestFailedAndGoesOn) {
  const auto open = Open();
  for (const char* id : {"a", "b"}) ASSERT_TRUE(open->stream->Write(Streamed(id, "nowhere")));
  open->stream->WritesDone();
  inference::ModelStreamInferResponse response;
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(open->stream->Read(&response));
    EXPECT_EQ(response.error_message(), "unknown model 'nowhere'");
    EXPECT_EQ(response.infer_response().id(), id);
  }
  EXPECT_FALSE(open->stream->Read(&response));
  EXPECT_TRUE(open->stream->Finish().ok());
}

TEST_F(InferenceStreamTest, EndsWithTheServerAfterTheAnswersToWhatWasRead) {
  const auto open = Open();
  ASSERT_TRUE(open->stream->Write(Streamed("a", "nowhere")));
  inference::ModelStreamInferResponse response;
  ASSERT_TRUE(open->stream->Read(&response));
  server_->Shutdown(absl::Seconds(20));  // within the deadline of the call, as the status shows
  EXPECT_FALSE(open->stream->Read(&response));
  const absl::Status ended = FromGrpc(open->stream->Finish());
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_THAT(ended.message(), HasSubstr("shutting down: open another stream"));
}

TEST_F(InferenceStreamTest, RefusesMoreStreamsThanTheBoundUntilOneEnds) {
  std::vector<std::unique_ptr<Opened>> held;
  inference::ModelStreamInferResponse response;
  for (size_t i = 0; i < limits::kInferenceStreams; ++i) {
    held.push_back(Open());
    ASSERT_TRUE(held.back()->stream->Write(Streamed("a", "nowhere")));
    ASSERT_TRUE(held.back()->stream->Read(&response));
  }
  const auto beyond = Open();
  EXPECT_FALSE(beyond->stream->Read(&response));
  EXPECT_EQ(BoundOf(FromGrpc(beyond->stream->Finish())), "inference_streams");
  held.front()->stream->WritesDone();
  EXPECT_FALSE(held.front()->stream->Read(&response));
  EXPECT_TRUE(held.front()->stream->Finish().ok());
  held.erase(held.begin());
  auto again = Open();
  ASSERT_TRUE(again->stream->Write(Streamed("a", "nowhere")));
  EXPECT_TRUE(again->stream->Read(&response));
}

}  // namespace
}  // namespace chainfleet
