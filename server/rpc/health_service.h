// The standard health service, grpc.health.v1.Health, for everyone who reaches the port.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <set>

#include "core/base/mutex.h"

namespace chainfleet {

// Answers for the whole server, whatever service a request names, so that the request is never read: gRPC's own service
// takes requests of any client into memory. Thread-safe; it outlives its server.
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
