// One memory budget, for all services, of requests that are being answered and replies that clients have not read yet.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/fair_budget.h"
#include "core/base/status.h"

namespace chainfleet {

// Fair to the clients (ClientPeer): connections, or addresses that a trusted proxy tells. Thread-safe.
class BytesInFlight {
 public:
  explicit BytesInFlight(int64_t max_bytes) : budget_(max_bytes) {}

  // Reserves `bytes` until the last copy of the returned pointer is gone, which may be after this object is gone.
  // Returns null if there is no room for the client. Small messages are not counted.
  std::shared_ptr<const void> Hold(const std::string& client, int64_t bytes);

  // Reserves room for a request: its bytes and those of the message that is parsed from them. RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<const void>> HoldRequest(const std::string& client, int64_t bytes);

  int64_t held_bytes() const { return budget_.held_bytes(); }

 private:
  const FairBudget budget_;
};

// Reserves room for replies until clients have read them. A unary call whose reply has no room fails with
// RESOURCE_EXHAUSTED / QUEUE_FULL; a server stream is cancelled. Bidirectional streams bound themselves. `on_answer`
// is called once for each call, with the status or the only reply, before the client reads either. This must be the
// first interceptor of a server, so that the others see the final status. `bytes` outlives the server.
using OnAnswer = std::function<void(const grpc::ServerContextBase& call, bool cancelled)>;
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeReplyBound(BytesInFlight* bytes,
                                                                                      OnAnswer on_answer);

}  // namespace chainfleet
