#include "worker/rpc/predict/shard_predict_stream.h"

#include <gtest/gtest.h>

#include <atomic>

#include "core/base/thread_pool.h"
#include "core/domain/worker_protocol.h"
#include "core/wire/predict_wire.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/loopback_server.h"
#include "tests/support/worker_fixture.h"

namespace chainfleet {
namespace {

// Serves one stream at a time: sends the test's orders and passes received messages to the test, each shard's until its
// answer is complete. Nothing ends the stream.
class FakeService final : public v1::WorkerService::Service {
 public:
  grpc::Status ServeShards(grpc::ServerContext*,
                           grpc::ServerReaderWriter<v1::ShardOrder, v1::ShardUpdate>* stream) override {
    v1::ShardUpdate update;
    if (!stream->Read(&update)) return grpc::Status::OK;
    updates.Put(update);
    for (;;) {
      const std::optional<v1::ShardOrder> order = orders.Take();
      if (!order) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restart");
      stream->Write(*order);
      if (order->has_cancel() || stuck) continue;
      do {
        if (!stream->Read(&update)) return grpc::Status::OK;
        updates.Put(update);
      } while (update.has_result() &&
               !(update.result().shard_id() == order->shard().shard_id() && update.result().last()));
    }
  }
  std::atomic<bool> stuck = false;  // reads nothing then
  Mailbox<v1::ShardUpdate> updates;
  Mailbox<std::optional<v1::ShardOrder>> orders;
};

class InstantRun final : public PredictionRun {
 public:
  explicit InstantRun(std::vector<PartialPrediction> partials) : partials_(std::move(partials)) {}
  absl::StatusOr<bool> Advance(const Pause&) override { return true; }
  std::vector<PartialPrediction> Take() override { return std::move(partials_); }

 private:
  std::vector<PartialPrediction> partials_;
};

class WidePredictor final : public Predictor {
 public:
  absl::StatusOr<std::unique_ptr<PredictionRun>> Start(std::vector<DrawStack> stacks, const InputTensor& inputs, bool,
                                                       std::shared_ptr<DeviceRows>*) override {
    if (inputs.shape.empty()) return WithReason(absl::InvalidArgumentError("no shape"), "INVALID_FIELD");
    std::vector<PartialPrediction> partials(stacks.size());
    for (size_t i = 0; i < stacks.size(); ++i) {
      partials[i].chain = stacks[i].chain;
      partials[i].num_rows = inputs.shape[0];
      partials[i].numbers().sum_wm.assign(static_cast<size_t>(inputs.shape[0]), 0.5);
    }
    return std::make_unique<InstantRun>(std::move(partials));
  }
  absl::Status AddGradients(const std::vector<DrawStack>&, const InputTensor&,
                            std::vector<PartialPrediction>*) const override {
    return absl::UnimplementedError("no gradients here");
  }
  absl::StatusOr<std::unique_ptr<PredictionRun>> StartRows(std::vector<DrawStack>, const ResidentDataset&, int64_t,
                                                           int64_t, bool, bool, const Corruption*,
                                                           std::shared_ptr<DeviceRows>*) override {
    return absl::InternalError("no rows here");
  }
  absl::StatusOr<std::unique_ptr<FlatnessRun>> StartFlatness(const FlatnessPlan&, const DrawStack&, const DrawStack&,
                                                             std::shared_ptr<const ResidentDataset>, int64_t,
                                                             int64_t) override {
    return absl::InternalError("no rows here");
  }
};

class ShardPredictStreamTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  ThreadPool pool_{2};
  FakeCoordinator coordinator_{&pool_};
  CountingObserver observer_;
  ObjectFetcher fetcher_{&coordinator_, &pool_, RngKey{1}};
  InputCache inputs_{&fetcher_, &pool_, {&pool_, [](const auto&) { return absl::OkStatus(); }}};
  DrawCache draws_{&fetcher_, &pool_};
  ShardServer shards_{
      [](auto, auto) -> absl::StatusOr<std::unique_ptr<Predictor>> { return std::make_unique<WidePredictor>(); },
      &draws_,
      &inputs_,
      &pool_,
      &clock_,
      &observer_};
  FakeService service_;
  LoopbackServer server_{&service_};
  Mailbox<bool> ready_;
  ShardPredictStream stream_{{server_.address(), "w0", "i0", RngKey{1}}, &shards_, &pool_};

  void SetUp() override {
    shards_.SetListener([this] { ready_.Put(true); });
    stream_.Start();
  }
  void TearDown() override {
    service_.orders.Put(std::nullopt);
    stream_.Stop();
    service_.orders.Put(std::nullopt);
  }

  ShardRequest Request(uint64_t id, std::vector<int64_t> shape) {
    ShardRequest request;
    request.shard_id = id;
    auto plan = std::make_shared<PredictPlan>();
    plan->job = "job-a";
    plan->model.kind = BuiltinModel{"mlp", {}};
    request.plan = plan;
    ProgressUpload upload;
    upload.commit.resume_point.step = 1;
    upload.draws.push_back({1, 1, {{1, 2}}});
    const ProgressUpload encoded = EncodeUpload(
        {"store", {{"job-a", 0}, 1}, {DrawKind::kTheta}, {{"theta", {2}, 0, 1}}, 0, FirstParentDigest()}, upload);
    coordinator_.blobs[encoded.commit.segment->object.name] = *encoded.segment_bytes;
    request.chains = {{{"job-a", 0}, {*encoded.commit.segment}, 0, 1}};
    request.kinds = {DrawKind::kTheta};
    auto inputs = std::make_shared<InputTensor>();
    inputs->shape = std::move(shape);
    request.inputs = inputs;
    return request;
  }
  void Order(const ShardRequest& request) {
    v1::ShardOrder order;
    *order.mutable_shard() = ToProto(request);
    service_.orders.Put(order);
  }
  void Cancel(uint64_t id) {
    v1::ShardOrder order;
    order.set_cancel(id);
    service_.orders.Put(order);
  }
};

TEST_F(ShardPredictStreamTest, SaysHelloAndSendsABigResultInChunks) {
  const v1::ShardUpdate hello = service_.updates.Take();
  EXPECT_EQ(hello.hello().worker(), "w0");
  EXPECT_EQ(hello.hello().protocol_version(), kProtocolVersion);
  Order(Request(7, {300'000}));
  ready_.Take();
  ASSERT_TRUE(shards_.ServeOne());
  std::string bytes;
  int chunks = 0;
  for (;;) {
    const v1::ShardUpdate update = service_.updates.Take();
    EXPECT_EQ(update.result().shard_id(), 7u);
    EXPECT_LE(update.result().data().size(), static_cast<size_t>(limits::kChunkBytes));
    bytes += update.result().data();
    ++chunks;
    if (update.result().last()) break;
  }
  EXPECT_EQ(chunks, 5);
  v1::ShardResult proto;
  ASSERT_TRUE(proto.ParseFromString(bytes));
  const auto result = FromProto(proto);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->partials.at(0).numbers().sum_wm.size(), 300'000u);
}

TEST_F(ShardPredictStreamTest, AResultCancelledOnAStuckStreamIsNeverSent) {
  service_.updates.Take();
  service_.stuck = true;
  for (uint64_t id = 1; id < 20; ++id) {
    Order(Request(id, {600'000}));
    ready_.Take();
    ASSERT_TRUE(shards_.ServeOne());
    Cancel(id);
  }
  service_.stuck = false;
  Order(Request(20, {300'000}));
  ready_.Take();
  ASSERT_TRUE(shards_.ServeOne());
  int cancelled = 0, wanted = 0;  // chunks; cancelled ones were in flight
  for (bool last = false; !last;) {
    const v1::ShardUpdate update = service_.updates.Take();
    const bool of_last = update.result().shard_id() == 20;
    ++(of_last ? wanted : cancelled);
    last = of_last && update.result().last();
  }
  EXPECT_EQ(wanted, 5);
  EXPECT_LE(cancelled, 60) << "of 19 shards of 10 chunks: as many as the line takes while nobody reads";
}

TEST_F(ShardPredictStreamTest, ReportsAFailedShardWithItsReason) {
  service_.updates.Take();
  Order(Request(8, {}));
  ready_.Take();
  ASSERT_TRUE(shards_.ServeOne());
  const v1::ShardUpdate update = service_.updates.Take();
  EXPECT_EQ(update.failure().shard_id(), 8u);
  EXPECT_EQ(update.failure().reason(), "INVALID_FIELD");
}

TEST_F(ShardPredictStreamTest, OpensTheStreamAgainWhenItBreaks) {
  service_.updates.Take();
  service_.orders.Put(std::nullopt);
  EXPECT_TRUE(service_.updates.Take().has_hello());
}

}  // namespace
}  // namespace chainfleet
