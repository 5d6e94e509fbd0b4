// Tests the priority of a Predict call over the wire: a real server in front of a batcher whose tasks run only on
// demand, so that the order of waiting requests is certain.
#include <memory>
#include <string>
#include <vector>

#include "tests/server/predict/fake_serving.h"
#include "tests/server/rpc/running_server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using PredictPriorityTest = ServerWithJob;

TEST_F(PredictPriorityTest, TheMoreUrgentOfTwoWaitingRequestsGoesFirst) {
  FakeClock clock;
  ManualExecutor executor(&clock);
  testing::FakeDrawCatalog catalog(&executor, {1}, Classes{3});
  testing::FakeShardPort port(&executor, testing::ArbitraryProbabilities(3));
  port.workers = {{"a", testing::FakeShardPort::Mood::kHangs}};
  ShardQueue queue(&clock, &executor, &port);
  PredictRouter router(&clock, &executor, &catalog, &queue);
  Batcher batcher(&clock, &executor, &router, &statistics_, {.max_rows = 1});
  auto server = GrpcServer::Start({"127.0.0.1:0"}, parts_, &shards_, &batcher, &evaluations_, &metrics_);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = v1::PredictService::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string((*server)->port()), grpc::InsecureChannelCredentials()));

  struct Asked {
    grpc::ClientContext context;
    v1::PredictRequest request;
    v1::PredictResponse response;
    Waited<grpc::Status> ended;
  };
  std::vector<std::unique_ptr<Asked>> asked;
  const auto ask = [&](const std::string& row, const std::string& priority, double seconds) {
    asked.push_back(std::make_unique<Asked>());
    Asked& call = *asked.back();
    SetDeadline(&call.context, seconds);
    call.request.set_job("softmax");
    call.request.mutable_inputs()->set_type(v1::UINT8);
    for (const int64_t size : {1, 1}) call.request.mutable_inputs()->add_shape(size);
    call.request.mutable_inputs()->set_data(row);
    call.request.set_priority(priority);
    stub->async()->Predict(&call.context, &call.request, &call.response, call.ended.Take());
    while (!executor.RunOne()) GetJob(job_).IgnoreError();  // until the request has arrived
    executor.RunUntilIdle();
  };
  for (int i = 0; i < Batcher::kFullBatchesInFlight; ++i) ask("b", "", 10);
  ASSERT_EQ(port.sent.size(), static_cast<size_t>(Batcher::kFullBatchesInFlight));
  ask("l", "low", 60);
  ask("n", "", 60);
  ask("h", "high", 60);
  ASSERT_EQ(port.sent.size(), static_cast<size_t>(Batcher::kFullBatchesInFlight)) << "they wait";
  port.workers = {{"a", testing::FakeShardPort::Mood::kAnswers}};
  executor.RunFor(absl::Minutes(2));  // hanging batches end long before waiting requests
  std::string order;
  for (const auto& sent : port.sent) {
    if (sent.request.inputs->bytes != "b") order += sent.request.inputs->bytes;
  }
  EXPECT_EQ(order, "hnl");
  for (size_t i = Batcher::kFullBatchesInFlight; i < asked.size(); ++i) {
    EXPECT_TRUE(asked[i]->ended.Get()->ok()) << asked[i]->request.priority();
  }
  (*server)->Shutdown(absl::Seconds(1));
}

}  // namespace
}  // namespace chainfleet
