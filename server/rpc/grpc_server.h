// The gRPC server: all services behind one gate, with health, reflection, keepalive and bounds.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "server/rpc/access_service.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/call_quota.h"
#include "server/rpc/health_service.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/job_service.h"
#include "server/rpc/listen.h"
#include "server/rpc/predict_service.h"
#include "server/rpc/shard_streams.h"
#include "server/rpc/worker_service.h"
#include "server/telemetry/server_metrics.h"

namespace chainfleet {

class GrpcServer {
 public:
  // ALREADY_EXISTS / PORT_TAKEN. The arguments outlive the server.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const Endpoint& endpoint, const ServiceParts& parts,
                                                           ShardStreams* shards, Batcher* batcher,
                                                           EvaluationOperations* evaluations, ServerMetrics* metrics);

  int port() const { return listening_.port; }
  // A channel to this server that no network carries. No call may begin after the server's shutdown: gRPC
  // 1.51 would crash.
  std::shared_ptr<grpc::Channel> InProcessChannel();

  // Sets health to NOT_SERVING and ends the streams, so that clients reconnect; cancels every call at the deadline.
  void Shutdown(absl::Duration deadline);

 private:
  GrpcServer(const ServiceParts& parts, ShardStreams* shards, Batcher* batcher, EvaluationOperations* evaluations,
             ServerMetrics* metrics);

  ShardStreams* const shards_;
  const std::shared_ptr<CallsInFlight> calls_;
  CallGate gate_;
  AccessService access_;
  JobService jobs_;
  WorkerService workers_;
  PredictService predictions_;
  InferenceService inference_;
  HealthService health_{/*is_serving=*/true};
  std::vector<std::unique_ptr<grpc::Service>> guarded_;
  ListeningServer listening_;
};

}  // namespace chainfleet
