// Only calls within the process, and proxies that the server trusts, may name the client that they are made for.
#include "server/rpc/peer.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "server/rpc/call_record.h"

namespace chainfleet {
namespace {

using testing::MatchesRegex;

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Answers every call with its client and its connection.
class Mirror final : public grpc::CallbackGenericService {
  class Reply final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reply(const std::string& peers) { Finish({grpc::StatusCode::ABORTED, peers}); }
    void OnDone() override { delete this; }
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Reply(absl::StrCat(ClientPeer(*context), " by ", ConnectionPeer(*context)));
  }
};

class Mirrored {
 public:
  explicit Mirrored(const std::vector<std::string>& trusted = {}) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&mirror_);
    builder.experimental().SetInterceptorCreators(
        MakeCallRecord({.clock = &clock_, .ids = RngKey{1}, .proxies = TrustedProxies::Parse(trusted).value()}));
    server_ = builder.BuildAndStart();
  }

  std::string SeenInProcess(const Metadata& metadata) { return SeenBy(server_->InProcessChannel({}), metadata); }
  std::string SeenOnTheNetwork(const Metadata& metadata) {
    return SeenBy(grpc::CreateChannel("127.0.0.1:" + std::to_string(port_), grpc::InsecureChannelCredentials()),
                  metadata);
  }

 private:
  static std::string SeenBy(const std::shared_ptr<grpc::Channel>& channel, const Metadata& metadata) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
    const grpc::Slice slice("request");
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer reply;
    std::string peers;
    std::atomic<bool> done = false;
    stub.UnaryCall(&context, "/any/Method", {}, &request, &reply, [&](const grpc::Status& status) {
      peers = status.error_message();
      done = true;
      done.notify_all();
    });
    done.wait(false);
    return peers;
  }

  const SystemClock clock_;
  Mirror mirror_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

constexpr char kNetwork[] = "ipv4:127\\.0\\.0\\.1:[0-9]+";  // peers of the test itself
const std::string kItself = absl::StrCat(kNetwork, " by ", kNetwork);

TEST(ClientPeer, ANetworkClientCannotNameAnotherPeer) {
  Mirrored server;
  const Metadata forged = {{kForwardedPeerHeader, "ipv4:10.1.2.3:4711"}, {kForwardedPeerHeader, "ipv4:10.1.2.4:1"}};
  EXPECT_EQ(server.SeenInProcess({forged[0]}), "ipv4:10.1.2.3:4711 by ipv4:10.1.2.3:4711");
  EXPECT_THAT(server.SeenOnTheNetwork(forged), MatchesRegex(kItself));
  EXPECT_THAT(Mirrored({"127.0.0.1/32"}).SeenOnTheNetwork(forged), MatchesRegex(kItself)) << "not even a proxy";
}

TEST(ClientPeer, ATrustedProxyNamesTheClientButNotTheConnection) {
  Mirrored server({"127.0.0.1/32", "10.9.0.0/16"});
  const std::string proxied = absl::StrCat("ipv4:10\\.1\\.2\\.3 by ", kNetwork);
  EXPECT_THAT(server.SeenOnTheNetwork({{kForwardedForHeader, "10.1.2.4, 10.1.2.3"}}), MatchesRegex(proxied));
  EXPECT_THAT(server.SeenOnTheNetwork({{kForwardedForHeader, "10.1.2.3"}, {kForwardedForHeader, "10.9.8.7"}}),
              MatchesRegex(proxied))
      << "two proxies, each with a line";
}

TEST(ClientPeer, NobodyElseNamesTheClient) {
  const Metadata forged = {{kForwardedForHeader, "10.1.2.3"}};
  EXPECT_THAT(Mirrored().SeenOnTheNetwork(forged), MatchesRegex(kItself));
  EXPECT_THAT(Mirrored({"10.0.0.0/8"}).SeenOnTheNetwork(forged), MatchesRegex(kItself));
}

}  // namespace
}  // namespace chainfleet
