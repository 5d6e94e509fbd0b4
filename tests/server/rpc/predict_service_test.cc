#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/store/draw_codec/safetensors.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/server/rpc/running_server.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

// A job with one committed draw of one chain, on a data set of images of 1 x 2 x 2.
class PredictServiceTest : public ServerWithJob {
 protected:
  v1::PredictRequest TwoRows() const {
    v1::PredictRequest request;
    request.set_job("softmax");
    request.mutable_inputs()->set_type(v1::UINT8);
    for (const int64_t size : {2, 1, 2, 2}) request.mutable_inputs()->add_shape(size);
    request.mutable_inputs()->set_data(std::string(8, '\x40'));
    return request;
  }
  absl::StatusOr<v1::PredictResponse> Predict(const v1::PredictRequest& request) {
    return Call(*predictions_, &v1::PredictService::Stub::Predict, request);
  }

  using ShardStream = grpc::ClientReaderWriter<v1::ShardUpdate, v1::ShardOrder>;
  std::unique_ptr<ShardStream> SilentWorker(grpc::ClientContext* context) {
    SetDeadline(context);
    auto stream = workers_->ServeShards(context);
    v1::ShardUpdate hello;
    hello.mutable_hello()->set_worker("w1");
    hello.mutable_hello()->set_protocol_version(kProtocolVersion);
    stream->Write(hello);
    while (shards_.Workers().empty()) {
      Call(*jobs_, &v1::JobService::Stub::GetServerInfo, v1::GetServerInfoRequest()).IgnoreError();
    }
    return stream;
  }
  static v1::EvaluateRequest OnDigits(const std::string& request_id = "") {
    v1::EvaluateRequest request;
    request.set_job("softmax");
    request.set_dataset("digits");
    request.set_request_id(request_id);
    return request;
  }
  // Its labels, all of class 0.
  void PutLabels() {
    const std::vector<int32_t> labels(100);
    const auto* bytes = reinterpret_cast<const char*>(labels.data());
    ASSERT_TRUE(
        blobs_.Put("store/datasets/x", WriteSafetensors({{"labels", TensorType::kInt32, {100}, bytes, 400}}, {})).ok());
  }
  absl::StatusOr<v1::EvaluationOperation> Start(const v1::EvaluateRequest& request) {
    return Call(*predictions_, &v1::PredictService::Stub::StartEvaluation, request);
  }
  absl::StatusOr<v1::EvaluationOperation> Get(const std::string& id) {
    v1::GetEvaluationRequest request;
    request.set_id(id);
    return Call(*predictions_, &v1::PredictService::Stub::GetEvaluation, request);
  }
  absl::StatusOr<v1::EvaluationOperation> Cancel(const std::string& id) {
    v1::GetEvaluationRequest request;
    request.set_id(id);
    return Call(*predictions_, &v1::PredictService::Stub::CancelEvaluation, request);
  }
};

TEST_F(PredictServiceTest, SaysThatAJobHasNoDrawsYet) {
  const auto response = Predict(TwoRows());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(response.status()), "NO_DRAWS");
}

TEST_F(PredictServiceTest, APointOfASweepIsAskedForAndAnsweredFromItsOwnChains) {
  ASSERT_TRUE(SetIntent(job_, v1::Job::CANCEL).ok());
  v1::JobSpec spec = GaussianJob("swept");
  spec.mutable_model()->set_builtin("softmax_regression");
  spec.mutable_dataset()->set_name("digits");
  for (const double temperature : {1.0, 2.0}) spec.mutable_sweep()->add_temperature(temperature);
  ASSERT_TRUE(CreateJob(spec).ok());
  CommitADraw();  // chain 0, the one chain of point 0
  v1::PredictRequest request = TwoRows();
  request.set_job("swept");
  const auto no_point = Predict(request);
  EXPECT_EQ(no_point.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(no_point.status()), "POINT_REQUIRED");
  EXPECT_THAT(std::string(no_point.status().message()), HasSubstr("0: temperature=1; 1: temperature=2"));
  request.mutable_selection()->set_point("temperature=3");
  EXPECT_EQ(ReasonOf(Predict(request).status()), "NO_SUCH_POINT");
  request.mutable_selection()->set_point("1");
  const auto other = Predict(request);
  EXPECT_EQ(ReasonOf(other.status()), "NO_DRAWS");
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("at temperature=2"));
  request.mutable_selection()->set_point("temperature=1");
  EXPECT_EQ(ReasonOf(Predict(request).status()), "NO_SERVING_WORKER") << "its draws were found";
}

TEST_F(PredictServiceTest, AdvisesToRetryWithoutAServingWorker) {
  CommitADraw();
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PredictResponse response;
  const grpc::Status status = predictions_->Predict(&context, TwoRows(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_EQ(ReasonOf(FromGrpc(status)), "NO_SERVING_WORKER");
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::RetryInfo retry;
  ASSERT_EQ(details.details_size(), 3) << "reason, retry, request";
  EXPECT_TRUE(details.details(1).UnpackTo(&retry));
}

TEST_F(PredictServiceTest, RefusesInputsThatDoNotFit) {
  CommitADraw();
  v1::PredictRequest wrong_shape = TwoRows();
  wrong_shape.mutable_inputs()->set_shape(3, 3);
  const auto refused = Predict(wrong_shape);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("2"));
  v1::PredictRequest short_bytes = TwoRows();
  short_bytes.mutable_inputs()->mutable_data()->pop_back();
  EXPECT_EQ(Predict(short_bytes).status().code(), absl::StatusCode::kInvalidArgument);
  v1::PredictRequest no_type = TwoRows();
  no_type.mutable_inputs()->clear_type();
  EXPECT_EQ(Predict(no_type).status().code(), absl::StatusCode::kInvalidArgument);
  v1::PredictRequest no_anchor = TwoRows();
  no_anchor.mutable_selection()->add_kinds(v1::THETA_A);
  EXPECT_EQ(Predict(no_anchor).status().code(), absl::StatusCode::kInvalidArgument);
  v1::PredictRequest negative = TwoRows();
  negative.mutable_selection()->set_members(-1);
  EXPECT_EQ(FieldViolationsOf(Predict(negative).status()).at(0).path, "selection.members");
  v1::PredictRequest long_lists = negative;
  long_lists.mutable_selection()->mutable_chains()->Resize(limits::kMaxChainsPerJob + 1, 0);
  EXPECT_EQ(FieldViolationsOf(Predict(long_lists).status()).at(0).path, "selection.chains");
  v1::PredictRequest fewer_than_none = TwoRows();
  fewer_than_none.set_min_draws(-1);
  const absl::Status none = Predict(fewer_than_none).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldViolationsOf(none).at(0).path, "min_draws");
}

// A uint8 job given floats from 0 to 255 lost accuracy without a word.
TEST_F(PredictServiceTest, RefusesInputsOfAnotherScale) {
  CommitADraw();
  v1::PredictRequest request = TwoRows();
  const std::vector<float> pixels = {0, 255, 3, 4, 0, 255, 3, 4};
  request.mutable_inputs()->set_type(v1::FLOAT32);
  request.mutable_inputs()->set_data(reinterpret_cast<const char*>(pixels.data()), pixels.size() * sizeof(float));
  const absl::Status refused = Predict(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("divide by 255"));
}

TEST_F(PredictServiceTest, KnowsThreePrioritiesAndRefusesOthers) {
  CommitADraw();
  v1::PredictRequest request = TwoRows();
  for (const char* known : {"", "low", "normal", "high"}) {
    request.set_priority(known);
    EXPECT_EQ(ReasonOf(Predict(request).status()), "NO_SERVING_WORKER") << known;
  }
  for (const char* unknown : {"urgent", "HIGH", "1"}) {
    request.set_priority(unknown);
    const absl::Status refused = Predict(request).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    EXPECT_EQ(FieldViolationsOf(refused).at(0).path, "priority");
    EXPECT_THAT(std::string(refused.message()), HasSubstr("high, normal, low"));
  }
}

TEST_F(PredictServiceTest, ACancelledJobIsNotServed) {
  CommitADraw();
  ASSERT_TRUE(SetIntent(job_, v1::Job::CANCEL).ok());
  const auto response = Predict(TwoRows());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(response.status()), "NOT_SERVED");
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("exported"));
}

TEST_F(PredictServiceTest, AJobThatCalibratesASamplerIsNotServed) {
  ASSERT_TRUE(SetIntent(job_, v1::Job::CANCEL).ok());
  v1::JobSpec spec = SoftmaxJob("calibration");
  spec.set_kind("sbc");
  EXPECT_EQ(FieldViolationsOf(CreateJob(spec).status()).at(0).path, "prior.gaussian.precision");
  spec.mutable_prior()->mutable_gaussian()->set_precision(1);
  ASSERT_TRUE(CreateJob(spec).ok());
  CommitADraw();
  v1::PredictRequest request = TwoRows();
  request.set_job("calibration");
  const absl::Status refused = Predict(request).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_EQ(ReasonOf(refused), "SBC_JOB");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("posteriors of different data"));
  v1::EvaluateRequest evaluation = OnDigits();
  evaluation.set_job("calibration");
  EXPECT_EQ(ReasonOf(Start(evaluation).status()), "SBC_JOB");
}

TEST_F(PredictServiceTest, ADeletedJobIsNotServedAndNoExportIsOffered) {
  CommitADraw();
  ASSERT_TRUE(SetIntent(job_, v1::Job::DELETE).ok());
  v1::PredictRequest request = TwoRows();
  request.set_job(job_);  // its name is free again
  const auto response = Predict(request);
  EXPECT_EQ(ReasonOf(response.status()), "NOT_SERVED");
  EXPECT_THAT(std::string(response.status().message()), testing::Not(HasSubstr("export")));
}

TEST_F(PredictServiceTest, SaysWhichJobVersionOrDatasetIsUnknown) {
  CommitADraw();
  v1::PredictRequest request = TwoRows();
  request.mutable_selection()->set_version(9);
  EXPECT_EQ(Predict(request).status().code(), absl::StatusCode::kNotFound);
  request.set_job("nobody");
  EXPECT_EQ(Predict(request).status().code(), absl::StatusCode::kNotFound);
  v1::EvaluateRequest evaluate;
  evaluate.set_job("softmax");
  evaluate.set_dataset("nowhere");
  grpc::ClientContext context;
  SetDeadline(&context);
  EXPECT_EQ(predictions_->Evaluate(&context, evaluate)->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(PredictServiceTest, RefusesAnEvaluationThatCannotBeUsed) {
  CommitADraw();
  PutLabels();
  v1::PredictRequest request = TwoRows();
  request.mutable_selection()->set_weights("eval-none");
  EXPECT_EQ(Predict(request).status().code(), absl::StatusCode::kNotFound);
  grpc::ClientContext worker_context;
  const auto stream = SilentWorker(&worker_context);
  const auto started = Start(OnDigits("r1"));
  ASSERT_TRUE(started.ok()) << started.status();
  request.mutable_selection()->set_weights(started->id());
  const absl::Status running = Predict(request).status();
  EXPECT_EQ(FieldViolationsOf(running).at(0).path, "selection.weights");
  EXPECT_THAT(std::string(running.message()), HasSubstr("RUNNING"));
  request.set_conformal(started->id());  // takes its own draws
  EXPECT_EQ(FieldViolationsOf(Predict(request).status()).at(0).path, "conformal");
  request = TwoRows();
  request.set_conformal_level(0.9);
  request.mutable_selection()->set_pseudo_bma(true);
  std::vector<std::string> paths;
  for (const FieldViolation& field : FieldViolationsOf(Predict(request).status())) paths.push_back(field.path);
  EXPECT_THAT(paths, testing::ElementsAre("conformal_level", "selection.pseudo_bma"));
  v1::EvaluateRequest evaluation = OnDigits();
  evaluation.mutable_selection()->set_weights(started->id());
  EXPECT_EQ(FieldViolationsOf(Start(evaluation).status()).at(0).path, "selection.weights");
  worker_context.TryCancel();
}

// A worker that takes shards and never answers: the call ends by its deadline, and when the client cancels.
TEST_F(PredictServiceTest, EndsWithTheClientsDeadlineWhenAWorkerIsSilent) {
  CommitADraw();
  grpc::ClientContext worker_context;
  const auto stream = SilentWorker(&worker_context);
  grpc::ClientContext context;
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(200, GPR_TIMESPAN)));
  context.AddMetadata(kRequestIdHeader, "mine-1");
  v1::PredictResponse response;
  EXPECT_EQ(predictions_->Predict(&context, TwoRows(), &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  v1::ShardOrder order;
  ASSERT_TRUE(stream->Read(&order));
  EXPECT_EQ(order.shard().chains(0).chain().job(), job_);
  EXPECT_EQ(order.shard().plan().num_classes(), 3);
  EXPECT_EQ(order.shard().trace_id(), "mine-1");
  ASSERT_TRUE(stream->Read(&order)) << "the worker is told to drop it";
  EXPECT_EQ(order.order_case(), v1::ShardOrder::kCancel);
  worker_context.TryCancel();
}

// The batcher's timer, gRPC's own or the client's reset may come first; an alert depends on these codes.
TEST_F(PredictServiceTest, PredictionsThatMissTheirClientsDeadlineAreCountedAsThat) {
  CommitADraw();
  grpc::ClientContext worker_context;
  const auto stream = SilentWorker(&worker_context);
  grpc::ClientContext gone;
  SetDeadline(&gone);
  const v1::PredictRequest request = TwoRows();
  v1::PredictResponse nothing;
  Waited<grpc::Status> ended;
  predictions_->async()->Predict(&gone, &request, &nothing, ended.Take());
  v1::ShardOrder order;
  ASSERT_TRUE(stream->Read(&order));
  gone.TryCancel();
  EXPECT_EQ(ended.Get()->error_code(), grpc::StatusCode::CANCELLED);
  constexpr int kCalls = 3;
  for (int i = 0; i < kCalls; ++i) {
    grpc::ClientContext context;
    SetDeadline(&context, 0.2);
    v1::PredictResponse response;
    EXPECT_EQ(predictions_->Predict(&context, TwoRows(), &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  const auto metrics = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  const std::string of = "\",method=\"/chainfleet.v1.PredictService/Predict\"} ";
  const std::string late =
      "chainfleet_grpc_handled_total{code=\"DEADLINE_EXCEEDED" + of + std::to_string(kCalls) + "\n";
  // The server's deadline passes a little after the client's, and the worker's end would give another answer.
  while (!absl::StrContains(Scrape(*metrics), late)) continue;
  worker_context.TryCancel();
  server_->Shutdown(absl::Seconds(1));
  const std::string page = Scrape(*metrics);
  EXPECT_THAT(page, HasSubstr(late));
  EXPECT_THAT(page, HasSubstr("code=\"CANCELLED" + of + "1\n")) << "of the client that went away";
}

TEST_F(PredictServiceTest, AnEvaluationIsAnOperationUntilItIsCancelled) {
  CommitADraw();
  PutLabels();
  EXPECT_EQ(ReasonOf(Start(OnDigits()).status()), "NO_SERVING_WORKER");
  grpc::ClientContext worker_context;
  const auto stream = SilentWorker(&worker_context);
  const auto started = Start(OnDigits("r1"));
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(started->state(), v1::EvaluationOperation::RUNNING);
  EXPECT_EQ(started->job_id(), job_);
  EXPECT_EQ(started->request().job(), job_);
  EXPECT_EQ(started->request().selection().version(), 1) << "every run rests on it";
  EXPECT_EQ(Start(OnDigits("r1"))->id(), started->id());
  v1::ShardOrder order;
  ASSERT_TRUE(stream->Read(&order));
  EXPECT_EQ(order.shard().rows().num_rows(), 100);
  EXPECT_EQ(order.shard().trace_id(), started->id());
  const auto cancelled = Cancel(started->id());
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::EvaluationOperation::CANCELLED);
  EXPECT_TRUE(cancelled->has_finished_at());
  ASSERT_TRUE(stream->Read(&order)) << "the worker is told to drop it";
  EXPECT_EQ(order.order_case(), v1::ShardOrder::kCancel);
  EXPECT_EQ(Get(started->id())->state(), v1::EvaluationOperation::CANCELLED);
  EXPECT_EQ(Get("eval-none").status().code(), absl::StatusCode::kNotFound);
  worker_context.TryCancel();
}

TEST_F(PredictServiceTest, AStreamWithoutARequestIdTakesItsEvaluationAlong) {
  CommitADraw();
  PutLabels();
  grpc::ClientContext worker_context, caller;
  const auto stream = SilentWorker(&worker_context);
  SetDeadline(&caller);
  const auto updates = predictions_->Evaluate(&caller, OnDigits());
  v1::ShardOrder order;
  ASSERT_TRUE(stream->Read(&order));
  caller.TryCancel();
  EXPECT_EQ(updates->Finish().error_code(), grpc::StatusCode::CANCELLED);
  ASSERT_TRUE(stream->Read(&order));
  EXPECT_EQ(order.order_case(), v1::ShardOrder::kCancel);

  grpc::ClientContext other;
  SetDeadline(&other);
  const auto detached = predictions_->Evaluate(&other, OnDigits("r1"));
  ASSERT_TRUE(stream->Read(&order));
  other.TryCancel();
  detached->Finish();
  EXPECT_EQ(Start(OnDigits("r1"))->state(), v1::EvaluationOperation::RUNNING) << "it goes on";
  worker_context.TryCancel();
}

TEST_F(PredictServiceTest, AFailedEvaluationSaysWhyToStreamsAndLists) {
  CommitADraw();  // the labels do not exist
  grpc::ClientContext worker_context, context;
  const auto stream = SilentWorker(&worker_context);
  SetDeadline(&context);
  const auto updates = predictions_->Evaluate(&context, OnDigits("r1"));
  v1::EvaluateUpdate update;
  while (updates->Read(&update)) EXPECT_TRUE(update.has_progress());
  const grpc::Status ended = updates->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::DATA_LOSS) << ended.error_message();
  Start(OnDigits("r2")).IgnoreError();
  v1::ListEvaluationsRequest request;
  request.set_job("softmax");
  request.set_page_size(1);
  const auto page = Call(*predictions_, &v1::PredictService::Stub::ListEvaluations, request);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->evaluations_size(), 1);
  EXPECT_EQ(page->evaluations(0).request().request_id(), "r2");
  EXPECT_THAT(page->next_page_token(), testing::EndsWith("." + page->evaluations(0).id()))
      << "a sequence number would count those of other tenants";
  request.set_page_token(page->next_page_token());
  const auto next = Call(*predictions_, &v1::PredictService::Stub::ListEvaluations, request);
  ASSERT_EQ(next->evaluations_size(), 1);
  EXPECT_EQ(next->evaluations(0).state(), v1::EvaluationOperation::FAILED);
  EXPECT_THAT(next->evaluations(0).error(), HasSubstr("put the data set again"));
  request.set_job("");
  EXPECT_EQ(ReasonOf(Call(*predictions_, &v1::PredictService::Stub::ListEvaluations, request).status()),
            "BAD_PAGE_TOKEN");
  worker_context.TryCancel();
}

TEST_F(PredictServiceTest, RefusesAnEvaluationByTheFieldsThatAreWrong) {
  CommitADraw();
  v1::EvaluateRequest request = OnDigits();
  request.set_curve_points(65);
  request.add_corruptions("fogg");
  std::vector<std::string> paths;
  const absl::Status refused = Start(request).status();
  for (const FieldViolation& violation : FieldViolationsOf(refused)) paths.push_back(violation.path);
  EXPECT_THAT(paths, testing::ElementsAre("curve_points", "corruptions"));
  EXPECT_TRUE(state_->ListEvaluations({})->empty());
}

}  // namespace
}  // namespace chainfleet
