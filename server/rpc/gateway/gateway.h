// The requests of the HTTP port as calls of the server's own gRPC methods, which authenticate, bound, count and answer
// them as they do for gRPC's clients.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/status.h"
#include "core/base/trusted_proxies.h"
#include "core/store/audit_log/audit_log.h"
#include "server/http/http_limits.h"
#include "server/http/http_server.h"
#include "server/rpc/gateway/file_upload.h"
#include "server/rpc/refused_peers.h"

namespace chainfleet {

struct GatewayParts {
  std::shared_ptr<grpc::Channel> channel;  // to the server, within the process
  // OK if a call of `method` ("/chainfleet.v1.JobService/GetJob") with this header would be accepted. A refused call is
  // made without a request, so that its refusal is counted, delayed and logged at one place.
  std::function<absl::Status(const std::string& method, const std::string& authorization)> authorize;
  const Clock* clock = nullptr;  // it and the executor outlive the gateway
  Executor* executor = nullptr;  // translates large bodies
  FairBudget bytes{limits::kHttpBytes};
  // True for a server without tokens that only this host reaches. Requests must then name this host: a page of another
  // site could otherwise have its own name resolved to this host, and call the server from the user's browser.
  bool is_local = false;
  TrustedProxies proxies = {};  // tell the addresses of their clients
  AuditLog* audit = nullptr;    // gets a line for refused pages of other sites; may be null
};

// True if `host`, of an address or a Host header with its port, is a name of this host alone.
bool IsLocalName(std::string host);

class Gateway final : public WebApplication {
 public:
  explicit Gateway(GatewayParts parts);
  // Waits until no call holds the channel. The last one would end it in a thread of gRPC, which 1.51 does not survive.
  ~Gateway() override;

  Admission Admit(const WebHead& head) override;
  std::function<void()> Answer(WebRequest request, std::function<void(WebReply)> done) override;

 private:
  struct Call;
  class Events;
  void Begin(const std::shared_ptr<Call>& call);
  void Start(const std::shared_ptr<Call>& call);
  void End(const std::shared_ptr<Call>& call, const grpc::Status& status);
  void RunSized(int64_t bytes, std::function<void()> work);

  const GatewayParts parts_;
  RefusedPeers sites_;  // clients with pages of other sites
  MessageStub stub_;
  const std::shared_ptr<absl::Notification> calls_ended_ = std::make_shared<absl::Notification>();
  // Each call has a copy; the end of the last one notifies.
  std::shared_ptr<void> alive_{nullptr, [ended = calls_ended_](void*) { ended->Notify(); }};
};

// Listens on `endpoint` with a Gateway. `is_open`: the server has no tokens. The errors are HttpServer::Start's.
absl::StatusOr<std::unique_ptr<HttpServer>> OpenHttp(const Endpoint& endpoint, bool is_open, GatewayParts parts);

}  // namespace chainfleet
