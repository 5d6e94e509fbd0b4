// The standard health service, grpc.health.v1.Health. It needs no token.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <set>

#include "core/base/mutex.h"

namespace chainfleet {

// Answers for the whole server and never reads the request: gRPC's own service would take requests of any client into
// memory. Thread-safe; it outlives its server.
class HealthService final : public grpc::Service {
 public:
  explicit HealthService(bool is_serving);

  void SetServing(bool is_serving);

 private:
  class Answer;
  class Watch;

  Mutex mutex_;
  bool is_serving_ CHAINFLEET_GUARDED_BY(mutex_);
  std::set<Watch*> watches_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
