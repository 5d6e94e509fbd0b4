// One memory budget, for all services, of requests that are being answered and replies that clients have not read yet.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Thread-safe.
class BytesInFlight {
 public:
  // `in_all`: bytes of all connections together. `of_a_connection`: bytes of one.
  BytesInFlight(int64_t in_all, int64_t of_a_connection) : in_all_(in_all), of_a_connection_(of_a_connection) {}

  // Reserves `bytes` until the last copy of the returned pointer is gone, which may be after this object is gone.
  // Returns null if there is no room, or if a connection that holds bytes would hold more than it leaves free, so that
  // a few connections cannot fill the whole. Small messages are not counted.
  std::shared_ptr<const void> Hold(const std::string& connection, int64_t bytes);

  // Reserves room for a request: its bytes and those of the message that is parsed from them. RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<const void>> HoldRequest(const std::string& connection, int64_t bytes);

  int64_t held_bytes() const;

 private:
  struct Held {
    mutable Mutex mutex;
    int64_t in_all CHAINFLEET_GUARDED_BY(mutex) = 0;
    std::map<std::string, int64_t> of_connection CHAINFLEET_GUARDED_BY(mutex);  // connections that hold bytes
  };

  const int64_t in_all_, of_a_connection_;
  const std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

// Reserves room for replies until clients have read them. A unary call whose reply has no room fails with
// RESOURCE_EXHAUSTED / QUEUE_FULL; a server stream is cancelled. Bidirectional streams bound themselves. `on_cancelled`
// is called with the peer of each call that ends as CANCELLED. This must be the first interceptor of a server, so that
// the others see the final status. `bytes` outlives the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeReplyBound(
    BytesInFlight* bytes, std::function<void(const std::string& peer)> on_cancelled);

}  // namespace chainfleet
