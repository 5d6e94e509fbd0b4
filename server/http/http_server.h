// The HTTP port: connections, request bodies and replies, all bounded. It knows no path.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/base/trusted_proxies.h"
#include "core/tls/tls_files.h"
#include "server/http/http_message.h"

namespace chainfleet {

// Answers requests. Any thread.
class WebApplication {
 public:
  virtual ~WebApplication() = default;

  // Called before a byte of the body is kept. Must not block.
  struct Admission {
    std::optional<WebReply> reply;  // known without the body and without Answer
    bool takes_body = false;        // else Answer is called with an empty body
  };
  virtual Admission Admit(const WebHead& head) = 0;

  // Must call `done` exactly once, now or later. Returns a function that may be called until then, when the client has
  // gone away.
  virtual std::function<void()> Answer(WebRequest request, std::function<void(WebReply)> done) = 0;
};

class HttpServer {
 public:
  // INVALID_ARGUMENT; ALREADY_EXISTS / PORT_TAKEN; errors of reading the authorities of clients. Requests and replies
  // take `bytes`, as those of the client that `proxies` tell. `clock` and `executor` outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Endpoint& endpoint,
                                                           std::unique_ptr<WebApplication> application,
                                                           const FairBudget& bytes, const Clock* clock,
                                                           Executor* executor, TrustedProxies proxies = {});
  // Takes no new connection, cancels what is not answered, and returns when all requests have ended.
  ~HttpServer();

  int port() const;

  class Connections;

 private:
  explicit HttpServer(std::shared_ptr<Connections> connections);
  const std::shared_ptr<Connections> connections_;
};

}  // namespace chainfleet
