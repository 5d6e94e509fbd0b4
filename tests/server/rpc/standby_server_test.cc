// Tests the answers on a standby's port with a client that knows no chainfleet service.
#include "server/rpc/standby_server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/wire/grpc_status.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {
namespace {

// Done within 20 s.
bool Next(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN));
  return queue->AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT && ok;
}

class HealthWatch {
 public:
  explicit HealthWatch(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(channel), watch_(stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &queue_)) {
    watch_->StartCall(nullptr);
    EXPECT_TRUE(Next(&queue_));
  }
  // Waits for the first answer, or for the end.
  bool IsOpen() {
    grpc::ByteBuffer health;
    watch_->Read(&health, nullptr);
    return Next(&queue_);
  }
  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() {
    grpc::Status status;
    watch_->Finish(&status, nullptr);
    EXPECT_TRUE(Next(&queue_));
    return status;
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> watch_;
};

TEST(StandbyServer, BoundsHealthWatches) {
  const SystemClock clock;
  const std::string address = "unix:" + testing::TempDir() + "watched-" + std::to_string(::getpid());
  const auto standby = StandbyServer::Start({address}, &clock, RngKey{1});
  ASSERT_TRUE(standby.ok()) << standby.status();
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  std::vector<std::unique_ptr<HealthWatch>> open;
  while (std::ssize(open) < limits::kHealthWatches) {
    open.push_back(std::make_unique<HealthWatch>(channel));
    if (!open.back()->IsOpen()) break;
  }
  EXPECT_EQ(std::ssize(open), limits::kHealthWatches / 2 + 1) << "one host may hold half of them";
  const absl::Status refused = FromGrpc(open.back()->Finish());
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
  open.pop_back();
  for (const auto& watch : open) watch->Cancel();
  for (const auto& watch : open) EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(StandbyServer, EndsWhileAClientWatchesItsHealth) {
  const SystemClock clock;
  const std::string address = "unix:" + testing::TempDir() + "standby-" + std::to_string(::getpid());
  auto standby = StandbyServer::Start({address}, &clock, RngKey{1});
  ASSERT_TRUE(standby.ok()) << standby.status();
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto watch = stub.PrepareCall(&context, "/grpc.health.v1.Health/Watch", &queue);
  watch->StartCall(nullptr);
  ASSERT_TRUE(Next(&queue));
  const grpc::Slice everything;
  watch->Write(grpc::ByteBuffer(&everything, 1), nullptr);
  ASSERT_TRUE(Next(&queue));
  grpc::ByteBuffer health;
  watch->Read(&health, nullptr);
  ASSERT_TRUE(Next(&queue)) << "the stream is open";
  standby->reset();  // hangs if it waits for the client
  grpc::Status status;
  watch->Finish(&status, nullptr);
  EXPECT_TRUE(Next(&queue));
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace chainfleet
