// Tests the answers on a standby's port with a client that knows no chainfleet service.
#include "server/rpc/standby_server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "core/wire/grpc_status.h"

namespace chainfleet {
namespace {

// Done within 20 s.
bool Next(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN));
  return queue->AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT && ok;
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
