#include <memory>
#include <string>
#include <vector>

#include "client/lib/client.h"
#include "core/wire/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/loopback_server.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Operation = v1::EvaluationOperation;

// Each call of GetEvaluation returns the next of `looks`; after the last one the server is going down.
class FakePredictService final : public v1::PredictService::Service {
 public:
  grpc::Status GetEvaluation(grpc::ServerContext*, const v1::GetEvaluationRequest* request, Operation* reply) override {
    if (looks.empty()) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down");
    *reply = looks.front();
    reply->set_id(request->id());
    if (looks.size() > 1 || !stays_up) looks.erase(looks.begin());
    return grpc::Status::OK;
  }

  std::vector<Operation> looks;
  bool stays_up = true;  // repeats the last of `looks`
};

Operation Found(Operation::State state, int64_t rows_done = 0) {
  Operation operation;
  operation.set_state(state);
  operation.mutable_progress()->set_rows_done(rows_done);
  operation.mutable_evaluation()->set_job_id("toy-abcdef");
  return operation;
}

class ClientEvaluations : public ::testing::Test {
 protected:
  ClientEvaluations() {
    ClientOptions options;
    options.addresses = {server_.address()};
    client_ = std::make_unique<Client>(options, &clock_, [this](absl::Duration wait) { clock_.Advance(wait); });
  }
  absl::StatusOr<v1::Evaluation> Wait(absl::Duration timeout = absl::InfiniteDuration()) {
    return client_->WaitEvaluation("eval-a", timeout, [this](const v1::EvaluateUpdate::Progress& progress) {
      rows_done_.push_back(progress.rows_done());
    });
  }

  FakeClock clock_;
  FakePredictService service_;
  LoopbackServer server_{&service_};
  std::unique_ptr<Client> client_;
  std::vector<int64_t> rows_done_;
};

TEST_F(ClientEvaluations, AreWaitedForWithTheirProgress) {
  service_.looks = {Found(Operation::RUNNING, 5), Found(Operation::RUNNING, 80), Found(Operation::SUCCEEDED)};
  const auto evaluation = Wait();
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->job_id(), "toy-abcdef");
  EXPECT_THAT(rows_done_, ElementsAre(5, 80));
}

TEST_F(ClientEvaluations, ReportTheErrorThatEndedThem) {
  service_.looks = {Found(Operation::FAILED)};
  service_.looks[0].set_error("2 readable draws, 5 are needed");
  const absl::Status failed = Wait().status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(failed.message(), "evaluation eval-a ended FAILED: 2 readable draws, 5 are needed");
  service_.looks = {Found(Operation::CANCELLED)};
  EXPECT_EQ(Wait().status().message(), "evaluation eval-a ended CANCELLED");
}

TEST_F(ClientEvaluations, EndAtTheDeadlineOrWhenNoServerAnswers) {
  service_.looks = {Found(Operation::RUNNING)};
  const absl::Duration began = clock_.Monotonic();
  EXPECT_EQ(Wait(absl::Seconds(30)).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LE(clock_.Monotonic() - began, absl::Seconds(30));
  service_.stays_up = false;
  const absl::Status silent = Wait().status();
  EXPECT_EQ(silent.code(), absl::StatusCode::kUnavailable) << silent;
  EXPECT_THAT(std::string(silent.message()), HasSubstr("server"));
}

}  // namespace
}  // namespace chainfleet
