// The standard health service, grpc.health.v1.Health. It needs no token.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <set>

#include "core/base/fair_budget.h"
#include "core/base/mutex.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {

// Answers for the whole server and never reads the request: gRPC's own service would take requests of any client into
// memory. RESOURCE_EXHAUSTED / QUEUE_FULL beyond limits::kHealthWatches. Thread-safe; it outlives its server. REQUIRES:
// a CallRecord (call_record.h) in the server.
class HealthService final : public grpc::Service {
 public:
  explicit HealthService(bool is_serving);

  void SetServing(bool is_serving);

 private:
  class Answer;
  class Watch;
  class Refusal;

  const FairBudget open_watches_{limits::kHealthWatches};  // a watch counts as one byte of its client's host
  Mutex mutex_;
  bool is_serving_ CHAINFLEET_GUARDED_BY(mutex_);
  std::set<Watch*> watches_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
