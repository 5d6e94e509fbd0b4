#include "server/rpc/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "server/rpc/call_quota.h"
#include "server/rpc/call_record.h"
#include "server/rpc/listen.h"
#include "server/rpc/reflection.h"

namespace chainfleet {

GrpcServer::GrpcServer(const ServiceParts& parts, ShardStreams* shards, Batcher* batcher,
                       EvaluationOperations* evaluations)
    : shards_(shards),
      jobs_(parts, shards),
      workers_(parts, shards),
      predictions_(parts, batcher, evaluations),
      inference_(parts, batcher, shards) {}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const std::string& address, const ServiceParts& parts,
                                                              ShardStreams* shards, Batcher* batcher,
                                                              EvaluationOperations* evaluations,
                                                              ServerMetrics* metrics) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(parts, shards, batcher, evaluations));
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  if (parts.auth->wants_tokens()) LeaveOutReflection(&builder);
  builder.RegisterService(&made->jobs_);
  builder.RegisterService(&made->workers_);
  builder.RegisterService(&made->predictions_);
  builder.RegisterService(&made->inference_);
  auto interceptors = MakeCallRecord(parts.clock, parts.request_ids, metrics);
  interceptors.push_back(MakeCallQuota(parts.auth, parts.access.tenant_calls));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  CHAINFLEET_ASSIGN_OR_RETURN(ListeningServer listening, Listen(address, &builder));
  made->server_ = std::move(listening.server);
  made->port_ = listening.port;
  return made;
}

void GrpcServer::Shutdown(absl::Duration deadline) {
  server_->GetHealthCheckService()->SetServingStatus(false);
  shards_->Close();
  jobs_.EndWatches();
  ShutDown(server_.get(), deadline);
}

}  // namespace chainfleet
