// The server of a coordinator that does not lead: it tells callers the leader's address.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

// Answers every call but health (NOT_SERVING) with UNAVAILABLE / NOT_LEADER and the leader's address. Thread-safe.
class StandbyServer {
 public:
  // `ids` makes ids for requests whose client gives none. `clock` outlives the server. ALREADY_EXISTS / PORT_TAKEN.
  static absl::StatusOr<std::unique_ptr<StandbyServer>> Start(const Endpoint& endpoint, const Clock* clock, RngKey ids);
  // Frees the port within 200 ms.
  ~StandbyServer();

  // A channel to this server that no network carries. No call may begin after the server's shutdown: gRPC
  // 1.51 would crash.
  std::shared_ptr<grpc::Channel> InProcessChannel();

  // "" while there is no leader.
  void SetLeader(const std::string& address);

 private:
  class Refusal;
  class Refusals;
  struct Parts;
  StandbyServer();
  absl::Status Answer();

  Mutex mutex_;
  std::string leader_ CHAINFLEET_GUARDED_BY(mutex_);
  std::unique_ptr<Parts> parts_;
};

}  // namespace chainfleet
