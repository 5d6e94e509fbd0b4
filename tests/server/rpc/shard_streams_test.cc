#include "server/rpc/shard_streams.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "core/wire/predict_wire.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

// A worker's id of the shard.
uint64_t SentId(uint64_t shard_id) { return Fold(kShardIds, shard_id).value; }

// The worker's end of a ServeShards stream.
class Serving {
 public:
  Serving(v1::WorkerService::Stub* stub, const std::string& worker, int32_t protocol_version = kProtocolVersion) {
    context_.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN)));
    stream_ = stub->ServeShards(&context_);
    v1::ShardUpdate update;
    update.mutable_hello()->set_worker(worker);
    update.mutable_hello()->set_incarnation("life");
    update.mutable_hello()->set_protocol_version(protocol_version);
    Say(update);
  }
  ~Serving() {
    if (!finished_) Finish().IgnoreError();
  }

  void Say(const v1::ShardUpdate& update) { stream_->Write(update); }
  v1::ShardOrder Hear() {
    v1::ShardOrder order;
    EXPECT_TRUE(stream_->Read(&order));
    return order;
  }
  void SendBytes(uint64_t shard_id, const std::string& data, bool last) {
    v1::ShardUpdate update;
    update.mutable_result()->set_shard_id(SentId(shard_id));
    update.mutable_result()->set_data(data);
    update.mutable_result()->set_last(last);
    Say(update);
  }
  void Drop() { context_.TryCancel(); }
  absl::Status Finish() {
    finished_ = true;
    stream_->WritesDone();
    v1::ShardOrder order;
    while (stream_->Read(&order)) {
    }
    return FromGrpc(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ShardUpdate, v1::ShardOrder>> stream_;
  bool finished_ = false;
};

absl::StatusOr<Admission> AnySession(const WorkerIdentity&) { return Admission(); }

class ShardStreamsTest : public RunningServer {
 protected:
  using Result = absl::StatusOr<ShardResult>;

  // Until the hello has arrived, a shard for the worker is refused at once, so repeat it.
  Waited<Result> SendWhenServing(const std::string& worker, uint64_t shard_id, size_t input_bytes = 0) {
    while (true) {
      for (const ServingWorker& serving : shards_.Workers()) {
        if (serving.id == worker) return SendNow(worker, shard_id, input_bytes);
      }
      Call(*jobs_, &v1::JobService::Stub::GetServerInfo, v1::GetServerInfoRequest()).IgnoreError();
    }
  }
  Waited<Result> SendNow(const std::string& worker, uint64_t shard_id, size_t input_bytes = 0) {
    return SendTo(&shards_, worker, shard_id, input_bytes);
  }
  static Waited<Result> SendTo(ShardStreams* shards, const std::string& worker, uint64_t shard_id,
                               size_t input_bytes = 0) {
    Waited<Result> result;
    shards->Send(worker, RequestOf(shard_id, input_bytes), result.Take());
    return result;
  }
  static ShardRequest RequestOf(uint64_t shard_id, size_t input_bytes = 0) {
    auto plan = std::make_shared<PredictPlan>();
    plan->job = "walk-aaaaaa";
    plan->model.kind = BuiltinModel{"mlp", {}};
    ShardRequest request;
    request.shard_id = shard_id;
    request.plan = plan;
    request.kinds = {DrawKind::kTheta};
    request.inputs =
        std::make_shared<const InputTensor>(InputTensor{.shape = {}, .bytes = std::string(input_bytes, 0)});
    return request;
  }
  static std::string ResultBytes(uint64_t shard_id) {
    ShardResult result;
    result.shard_id = shard_id;
    result.partials.resize(1);
    result.partials[0].numbers().sum_wm.assign(1000, 0.5);
    return ToProto(result).SerializeAsString();
  }
};

TEST_F(ShardStreamsTest, CarriesAShardDownAndItsResultUpInChunks) {
  Serving worker(workers_.get(), "w1");
  auto result = SendWhenServing("w1", 7);
  const v1::ShardOrder order = worker.Hear();
  EXPECT_EQ(order.shard().shard_id(), SentId(7)) << "7 would count the shards of other tenants";
  EXPECT_EQ(order.shard().plan().job(), "walk-aaaaaa");
  const std::string bytes = ResultBytes(7);
  worker.SendBytes(7, bytes.substr(0, 3000), false);
  worker.SendBytes(7, bytes.substr(3000), true);
  const auto got = result.Get();
  ASSERT_TRUE(got && got->ok()) << got->status();
  EXPECT_EQ((*got)->partials.at(0).numbers().sum_wm.size(), 1000u);
  EXPECT_EQ(shards_.Workers().at(0).shards_in_flight, 0);
}

TEST_F(ShardStreamsTest, AnOrderHasNothingThatItsWorkerDoesNotRead) {
  Serving worker(workers_.get(), "w1");
  auto first = SendWhenServing("w1", 1);
  worker.Hear();
  ShardRequest request = RequestOf(2);
  ChainDraws& chain = request.chains.emplace_back();
  chain.chain = {"walk-aaaaaa", 0};
  chain.skip_draws = 1;
  chain.num_draws = 7;
  chain.every = 3;
  for (int64_t i = 0; i < 5; ++i) {
    Segment& segment = chain.segments.emplace_back();
    segment.first_index = 100 + 2 * i;
    segment.steps = {1000 + 2 * i, 1001 + 2 * i};
    segment.weights = {1, 2};
    segment.kinds = {DrawKind::kTheta};
    segment.object = {"object" + std::to_string(i), 4, DigestHex(64, 'a')};
    segment.digest = DigestHex(64, 'b');
    segment.parent_digest = DigestHex(64, 'c');
  }
  Waited<Result> result;
  shards_.Send("w1", request, result.Take());
  const v1::ShardOrder order = worker.Hear();
  ASSERT_EQ(order.shard().chains_size(), 1);
  EXPECT_EQ(order.shard().chains(0).skip_draws(), 1);
  ASSERT_EQ(order.shard().chains(0).segments_size(), 5);
  for (int i = 0; i < 5; ++i) {
    const v1::Segment& segment = order.shard().chains(0).segments(i);
    EXPECT_THAT(segment.steps(), testing::ElementsAre(0, 0)) << "their number counts";
    EXPECT_EQ(segment.first_index(), 0);
    EXPECT_EQ(segment.kinds_size(), 0);
    EXPECT_EQ(segment.parent_digest(), "");
    const bool is_read = i == 0 || i == 2 || i == 3;  // draws 1, 4 and 7
    EXPECT_EQ(segment.weights_size(), is_read ? 2 : 0) << i;
    EXPECT_EQ(segment.digest(), is_read ? DigestHex(64, 'b') : "") << i;
    EXPECT_EQ(segment.object().name(), is_read ? "object" + std::to_string(i) : "") << i;
    EXPECT_EQ(segment.object().size_bytes(), is_read ? 4 : 0) << i;
    EXPECT_EQ(segment.object().sha256(), is_read ? DigestHex(64, 'a') : "") << i;
  }
}

TEST_F(ShardStreamsTest, AShardLargerThanAMessageIsRefusedAndTheStreamOfItsWorkerGoesOn) {
  Serving worker(workers_.get(), "w1");
  const size_t bytes = 15 * limits::kMiB;
  v1::ShardOrder order;
  *order.mutable_shard() = ToProto(RequestOf(1, bytes));
  order.mutable_shard()->set_shard_id(SentId(1));
  const size_t most = bytes + static_cast<size_t>(limits::kMaxMessageBytes) - order.ByteSizeLong();
  auto largest = SendWhenServing("w1", 1, most);
  EXPECT_EQ(worker.Hear().shard().shard_id(), SentId(1));
  const absl::Status refused = SendNow("w1", 1, most + 1).Get()->status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << "other workers are not asked then";
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("have 16777217 bytes, the most is 16777216: choose"));
  EXPECT_EQ(shards_.Workers().at(0).shards_in_flight, 1);
  worker.SendBytes(1, ResultBytes(1), true);
  EXPECT_TRUE(largest.Get()->ok());
}

// A worker's RESOURCE_EXHAUSTED.
v1::ShardUpdate FailureOf(uint64_t shard, const std::string& message, const std::string& reason) {
  v1::ShardUpdate update;
  update.mutable_failure()->set_shard_id(shard);
  update.mutable_failure()->set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  update.mutable_failure()->set_message(message);
  update.mutable_failure()->set_reason(reason);
  return update;
}

TEST_F(ShardStreamsTest, PassesOnTheWorkersError) {
  Serving worker(workers_.get(), "w1");
  auto result = SendWhenServing("w1", 7);
  worker.Hear();
  worker.Say(FailureOf(SentId(7), "queue full", "QUEUE_FULL"));
  const auto got = result.Get();
  EXPECT_EQ(got->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(got->status()), "QUEUE_FULL");
}

TEST_F(ShardStreamsTest, AFailureKeepsOnlyReasonsThatWorkersGiveAndTheBeginningOfItsText) {
  Serving worker(workers_.get(), "w1");
  auto result = SendWhenServing("w1", 7);
  worker.Hear();
  worker.Say(FailureOf(SentId(7), std::string(5000, 'x'), "A_NEW_LABEL"));
  const absl::Status status = result.Get()->status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(ReasonOf(status), "");
  EXPECT_EQ(status.message().size(), 1024u);
}

TEST_F(ShardStreamsTest, AWorkerThatVanishesFailsItsShardsAsUnavailable) {
  Serving worker(workers_.get(), "w1");
  auto first = SendWhenServing("w1", 1);
  auto second = SendNow("w1", 2);
  worker.Hear();
  worker.SendBytes(1, "half of a res", false);
  worker.Drop();
  EXPECT_EQ(first.Get()->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(second.Get()->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(SendNow("w1", 3).Get()->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(shards_.Workers().empty());
}

// gRPC's side of a stream: runs reactions concurrently, and OnDone last.
class DrivenStream final : public grpc::ServerCallbackReaderWriter<StreamedRequest, v1::ShardOrder> {
 public:
  explicit DrivenStream(ShardStreams::Reactor* reactor) : reactor_(reactor) { BindReactor(reactor); }
  ~DrivenStream() override {
    reactor_->OnReadDone(false);
    reactor_->OnDone();
  }
  void SayHello(const std::string& worker) {
    v1::ShardUpdate update;
    update.mutable_hello()->set_worker(worker);
    update.mutable_hello()->set_protocol_version(kProtocolVersion);
    Say(update);
  }
  void Say(const v1::ShardUpdate& update) {
    const grpc::Slice slice(update.SerializeAsString());
    grpc::ByteBuffer wire(&slice, 1);
    request_->Read(&wire);
    reactor_->OnReadDone(true);
  }
  void SayPart(uint64_t shard_id, size_t bytes) {
    v1::ShardUpdate update;
    update.mutable_result()->set_shard_id(SentId(shard_id));
    update.mutable_result()->set_data(std::string(bytes, 'x'));
    Say(update);
  }
  // Reads the orders that wait. Without this call a write lasts for ever. Returns the shards that were cancelled.
  std::vector<uint64_t> TakeOrders() {
    std::vector<uint64_t> cancelled;
    while (const v1::ShardOrder* const order = std::exchange(written_, nullptr)) {
      if (order->has_cancel()) cancelled.push_back(order->cancel());
      reactor_->OnWriteDone(true);
    }
    return cancelled;
  }
  void Cut() { reactor_->OnCancel(); }
  // Unset while the stream is open.
  const std::optional<absl::Status>& ended() const { return ended_; }

 private:
  void Finish(grpc::Status status) override { ended_ = FromGrpc(status); }
  void SendInitialMetadata() override {}
  void Read(StreamedRequest* request) override { request_ = request; }
  void Write(const v1::ShardOrder* order, grpc::WriteOptions) override { written_ = order; }
  void WriteAndFinish(const v1::ShardOrder*, grpc::WriteOptions, grpc::Status) override {}
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}

  ShardStreams::Reactor* const reactor_;
  StreamedRequest* request_ = nullptr;
  const v1::ShardOrder* written_ = nullptr;
  std::optional<absl::Status> ended_;
};

TEST_F(ShardStreamsTest, AStreamThatIsCutWhileItsHelloIsTakenLeavesNoWorkerBehind) {
  {
    DrivenStream stream(shards_.Open(absl::OkStatus(), AnySession, &absl::OkStatus));
    stream.Cut();
    stream.SayHello("w1");
    EXPECT_THAT(shards_.Workers(), testing::IsEmpty()) << "nobody would ever end it";
  }
  for (int i = 0; i < 200; ++i) {
    DrivenStream stream(shards_.Open(absl::OkStatus(), AnySession, &absl::OkStatus));
    std::thread cut([&] { stream.Cut(); });
    stream.SayHello("w1");
    cut.join();
    EXPECT_THAT(shards_.Workers(), testing::IsEmpty()) << i;
  }
}

TEST_F(ShardStreamsTest, AStreamEndsWithTheTokenThatLetItsWorkerIn) {
  std::atomic<bool> is_known = true;
  const auto still = [&] { return is_known ? absl::OkStatus() : absl::UnauthenticatedError("revoked"); };
  DrivenStream stream(shards_.Open(absl::OkStatus(), AnySession, still));
  stream.SayHello("w1");
  ASSERT_THAT(shards_.Workers(), testing::SizeIs(1));
  is_known = false;
  EXPECT_TRUE(absl::IsUnavailable(SendNow("w1", 1).Get()->status())) << "others may answer this";
  EXPECT_THAT(shards_.Workers(), testing::IsEmpty());
  stream.Cut();
}

TEST_F(ShardStreamsTest, ANewStreamOfAWorkerTakesThePlaceOfTheOld) {
  Serving old(workers_.get(), "w1");
  auto lost = SendWhenServing("w1", 1);
  Serving fresh(workers_.get(), "w1");
  EXPECT_EQ(lost.Get()->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(old.Finish().code(), absl::StatusCode::kAborted);
  auto result = SendWhenServing("w1", 2);
  EXPECT_EQ(fresh.Hear().shard().shard_id(), SentId(2));
  fresh.SendBytes(2, ResultBytes(2), true);
  EXPECT_TRUE(result.Get()->ok());
}

TEST_F(ShardStreamsTest, CancelReachesTheWorkerAndAnswersTheCaller) {
  Serving worker(workers_.get(), "w1");
  auto result = SendWhenServing("w1", 7);
  shards_.Cancel("w1", 7);
  EXPECT_EQ(result.Get()->status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(worker.Hear().shard().shard_id(), SentId(7));
  EXPECT_EQ(worker.Hear().cancel(), SentId(7));
  worker.SendBytes(7, ResultBytes(7), true);  // too late: no call waits, and nothing breaks
  auto next = SendNow("w1", 8);
  worker.Hear();
  worker.SendBytes(8, ResultBytes(8), true);
  EXPECT_TRUE(next.Get()->ok());
}

TEST_F(ShardStreamsTest, AShardCancelledOnAStuckStreamIsNeverSent) {
  Serving worker(workers_.get(), "w1");
  const size_t bytes = 3 * limits::kMiB;  // so that few of them are sent while the worker reads nothing
  auto first = SendWhenServing("w1", 1, bytes);
  for (uint64_t id = 2; id < 20; ++id) {
    auto result = SendNow("w1", id, bytes);
    shards_.Cancel("w1", id);
    EXPECT_EQ(result.Get()->status().code(), absl::StatusCode::kCancelled);
  }
  auto last = SendNow("w1", 20);
  int taken = 0;  // orders in flight, and their cancels
  while (worker.Hear().shard().shard_id() != SentId(20) && taken < 100) ++taken;
  EXPECT_LE(taken, 8) << "of 19 shards and 18 cancels";
}

// A worker that reads nothing could otherwise make the server queue orders without end.
TEST_F(ShardStreamsTest, AnAnswerToAShardThatWasNotSentEndsTheStream) {
  v1::ShardUpdate failure, result;
  failure.mutable_failure()->set_shard_id(SentId(2));
  failure.mutable_failure()->set_code(static_cast<int>(absl::StatusCode::kUnavailable));
  result.mutable_result()->set_shard_id(SentId(2));
  for (const v1::ShardUpdate& answer : {failure, result}) {
    DrivenStream stream(shards_.Open(absl::OkStatus(), AnySession, &absl::OkStatus));
    stream.SayHello("w1");
    auto sent = SendNow("w1", 1), unsent = SendNow("w1", 2), other = SendNow("w1", 4);
    v1::ShardUpdate early = failure;
    early.mutable_failure()->set_shard_id(SentId(1));
    early.mutable_failure()->set_message("a worker may answer while gRPC still says that the order is being written");
    stream.Say(early);
    EXPECT_EQ(sent.Get()->status().message(), early.failure().message());
    early.mutable_failure()->set_shard_id(SentId(3));
    stream.Say(early);  // a shard that was cancelled meanwhile, as far as the server knows
    ASSERT_FALSE(stream.ended().has_value());
    stream.Say(answer);
    ASSERT_TRUE(stream.ended().has_value());
    EXPECT_TRUE(absl::IsInvalidArgument(*stream.ended()));
    EXPECT_THAT(std::string(stream.ended()->message()), testing::HasSubstr("that it was not sent"));
    EXPECT_EQ(ReasonOf(unsent.Get()->status()), "WORKER_LOST");
    EXPECT_EQ(ReasonOf(other.Get()->status()), "WORKER_LOST");
    EXPECT_THAT(shards_.Workers(), testing::IsEmpty());
  }
}

TEST_F(ShardStreamsTest, UnfinishedResultsOfAWorkerTakeNoMoreThanTheyLeaveFree) {
  ShardStreams shards(threads_.get(), kShardIds, 1000);
  DrivenStream first(shards.Open(absl::OkStatus(), AnySession, &absl::OkStatus));
  DrivenStream second(shards.Open(absl::OkStatus(), AnySession, &absl::OkStatus));
  first.SayHello("w1");
  second.SayHello("w2");
  auto large = SendTo(&shards, "w1", 1), refused = SendTo(&shards, "w1", 2), other = SendTo(&shards, "w2", 3);
  EXPECT_THAT(first.TakeOrders(), testing::IsEmpty());
  first.SayPart(1, 400);
  first.SayPart(2, 100);
  first.SayPart(2, 1);
  const absl::Status full = refused.Get()->status();
  EXPECT_EQ(ReasonOf(full), "QUEUE_FULL");
  EXPECT_EQ(BoundOf(full), "shard_result_bytes");
  EXPECT_THAT(first.TakeOrders(), testing::ElementsAre(SentId(2))) << "the worker need not send the rest";
  first.SayPart(2, 300);  // sent before the worker knew
  second.SayPart(3, 300);
  shards.Cancel("w1", 1);
  EXPECT_TRUE(absl::IsCancelled(large.Get()->status()));
  second.SayPart(3, 200);
  second.SayPart(3, 1);
  EXPECT_EQ(ReasonOf(other.Get()->status()), "QUEUE_FULL") << "half, when the other worker holds nothing";
  EXPECT_FALSE(first.ended().has_value() || second.ended().has_value());
}

TEST_F(ShardStreamsTest, UnfinishedResultsOfTheWorkersOfATenantCountTogether) {
  ShardStreams shards(threads_.get(), kShardIds, 1000);
  const auto of_vision = [](const WorkerIdentity&) -> absl::StatusOr<Admission> { return Admission{"t", "vision"}; };
  DrivenStream first(shards.Open(absl::OkStatus(), of_vision, &absl::OkStatus));
  DrivenStream second(shards.Open(absl::OkStatus(), of_vision, &absl::OkStatus));
  first.SayHello("w1");
  second.SayHello("w2");
  auto held = SendTo(&shards, "w1", 1), refused = SendTo(&shards, "w2", 2);
  first.SayPart(1, 400);
  second.SayPart(2, 101);
  EXPECT_EQ(ReasonOf(refused.Get()->status()), "QUEUE_FULL");
}

std::string EmptySumBytes(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes.append("\x12\x00", 2);  // field 2, of no bytes
  return bytes;
}

TEST_F(ShardStreamsTest, AResultThatTakesFarMoreMemoryThanBytesIsRefused) {
  Serving worker(workers_.get(), "w1");
  auto result = SendWhenServing("w1", 7);
  worker.Hear();
  worker.SendBytes(7, EmptySumBytes(4'000'000), true);
  EXPECT_EQ(ReasonOf(result.Get()->status()), "BAD_SHARD_RESULT");
}

TEST_F(ShardStreamsTest, TheMemoryOfAResultCountsWhileItIsRead) {
  ShardStreams shards(threads_.get(), kShardIds, 100'000);
  DrivenStream stream(shards.Open(absl::OkStatus(), AnySession, &absl::OkStatus));
  stream.SayHello("w1");
  auto result = SendTo(&shards, "w1", 1);
  stream.TakeOrders();
  v1::ShardUpdate update;
  update.mutable_result()->set_shard_id(SentId(1));
  update.mutable_result()->set_data(EmptySumBytes(200));
  update.mutable_result()->set_last(true);
  stream.Say(update);
  EXPECT_EQ(BoundOf(result.Get()->status()), "shard_result_bytes");
}

TEST_F(ShardStreamsTest, BoundsTheShardsInFlightOfAWorker) {
  Serving worker(workers_.get(), "w1");
  std::vector<Waited<Result>> results;
  results.push_back(SendWhenServing("w1", 1));
  for (int i = 1; i < kMostShardsPerWorker; ++i) results.push_back(SendNow("w1", 1 + i));
  EXPECT_EQ(SendNow("w1", 99).Get()->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(shards_.Workers().at(0).shards_in_flight, kMostShardsPerWorker);
}

TEST_F(ShardStreamsTest, RefusesResultsThatDoNotParse) {
  Serving worker(workers_.get(), "w1");
  auto result = SendWhenServing("w1", 7);
  worker.Hear();
  worker.SendBytes(7, "\xff\xff\xff", true);
  EXPECT_EQ(ReasonOf(result.Get()->status()), "BAD_SHARD_RESULT");
}

TEST_F(ShardStreamsTest, RefusesAStreamOfAnotherProtocolWithoutHelloOrWithTwo) {
  Serving other(workers_.get(), "w1", kProtocolVersion + 1);
  EXPECT_EQ(ReasonOf(other.Finish()), "VERSION_MISMATCH");
  Serving nameless(workers_.get(), "");
  EXPECT_EQ(nameless.Finish().code(), absl::StatusCode::kInvalidArgument);
  Serving twice(workers_.get(), "w1");
  v1::ShardUpdate update;
  update.mutable_hello()->set_worker("w2");
  update.mutable_hello()->set_protocol_version(kProtocolVersion);
  twice.Say(update);
  EXPECT_EQ(twice.Finish().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(shards_.Workers().empty());
}

}  // namespace
}  // namespace chainfleet
