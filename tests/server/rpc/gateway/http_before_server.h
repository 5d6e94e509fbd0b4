// The HTTP port before a real gRPC server on this host.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nlohmann/json.hpp"
#include "server/http/error_reply.h"
#include "server/rpc/gateway/gateway.h"
#include "tests/server/http/http_peer.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {

using nlohmann::json;

class HttpBeforeServer : public RunningServer {
 protected:
  explicit HttpBeforeServer(const GivenTokens& tokens = {}, int64_t bytes = limits::kHttpBytes)
      : RunningServer(tokens) {
    const auto authorize = [this](const std::string& method, const std::string& authorization) {
      return auth_.Authorize(method, {{"authorization", authorization}}).status();
    };
    http_ = OpenHttp({"127.0.0.1:0"}, tokens.empty(),
                     {.channel = server_->InProcessChannel(),
                      .authorize = authorize,
                      .clock = &clock_,
                      .executor = threads_.get(),
                      .bytes = FairBudget(bytes, [this] { metrics_.CountRefusedCall(NoRoom()); }),
                      .audit = audit_.get()})
                .value();
  }

  PeerReply Ask(const std::string& request) { return HttpPeer(http_->port()).Send(request).Read(); }
  static json Parsed(const PeerReply& reply) { return json::parse(reply.body, nullptr, /*allow_exceptions=*/false); }
  // The code and the words of {"error": ...}. A call that failed also has a reason; errors of HTTP itself have none.
  void ExpectError(const std::string& request, int code, const std::string& words) {
    const PeerReply reply = Ask(request);
    EXPECT_EQ(reply.code, code) << request.substr(0, 200);
    ASSERT_TRUE(Parsed(reply).contains("error")) << reply.head << reply.body;
    EXPECT_THAT(Parsed(reply)["error"].get<std::string>(), testing::HasSubstr(words));
    EXPECT_TRUE(!Parsed(reply).contains("code") || Parsed(reply).value("reason", "") != "") << reply.body;
  }

  std::unique_ptr<HttpServer> http_;
};

}  // namespace chainfleet
