// Memory of requests that are being answered and of replies that clients have not taken: one budget for all services.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"

namespace chainfleet {

// Thread-safe.
class BytesInFlight {
 public:
  // Bytes of all connections together, and of one.
  BytesInFlight(int64_t in_all, int64_t of_a_connection) : in_all_(in_all), of_a_connection_(of_a_connection) {}

  // Room for `bytes`, until the last copy of the returned pointer is gone; that may be after this object is gone. Null:
  // there is no room. Small messages are not counted.
  std::shared_ptr<const void> Hold(const std::string& connection, int64_t bytes);

  int64_t held_bytes() const;

 private:
  struct Held {
    mutable Mutex mutex;
    int64_t in_all CHAINFLEET_GUARDED_BY(mutex) = 0;
    std::map<std::string, int64_t> of_connection CHAINFLEET_GUARDED_BY(mutex);  // of those that hold some
  };

  const int64_t in_all_, of_a_connection_;
  const std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

// Holds replies until clients have taken them. A unary call whose reply has no room fails with RESOURCE_EXHAUSTED /
// QUEUE_FULL; a server stream is cancelled. Streams in both directions bound themselves. `on_cancelled` hears the peer of
// each call that ends as CANCELLED. It must be the first interceptor of a server, so that others see the status. `bytes`
// outlives the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeReplyBound(
    BytesInFlight* bytes, std::function<void(const std::string& peer)> on_cancelled);

}  // namespace chainfleet
