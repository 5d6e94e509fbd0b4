// Only calls within the process may name the client that they are made for.
#include "server/rpc/peer.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <string>

namespace chainfleet {
namespace {

// Answers every call with the client that PeerOf names.
class Mirror final : public grpc::CallbackGenericService {
  class Reply final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reply(const std::string& peer) { Finish({grpc::StatusCode::ABORTED, peer}); }
    void OnDone() override { delete this; }
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Reply(PeerOf(*context));
  }
};

std::string PeerSeenBy(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.AddMetadata(kForwardedPeerHeader, "ipv4:10.1.2.3:4711");
  const grpc::Slice slice("request");
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer reply;
  std::string peer;
  std::atomic<bool> done = false;
  stub.UnaryCall(&context, "/any/Method", {}, &request, &reply, [&](const grpc::Status& status) {
    peer = status.error_message();
    done = true;
    done.notify_all();
  });
  done.wait(false);
  return peer;
}

TEST(PeerOf, ANetworkClientCannotNameAnotherPeer) {
  Mirror mirror;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&mirror);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  EXPECT_EQ(PeerSeenBy(server->InProcessChannel({})), "ipv4:10.1.2.3:4711");
  const auto network = grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials());
  EXPECT_THAT(PeerSeenBy(network), testing::StartsWith("ipv4:127.0.0.1:"));
}

}  // namespace
}  // namespace chainfleet
