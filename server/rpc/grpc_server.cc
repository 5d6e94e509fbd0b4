#include "server/rpc/grpc_server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>

#include <utility>

#include "server/rpc/call_record.h"
#include "server/rpc/reflection.h"

namespace chainfleet {

GrpcServer::GrpcServer(const ServiceParts& parts, ShardStreams* shards, Batcher* batcher,
                       EvaluationOperations* evaluations, ServerMetrics* metrics)
    : shards_(shards),
      calls_(std::make_shared<CallsInFlight>(parts.access.tenant_calls)),
      gate_(parts.clock, parts.executor, parts.auth, metrics, parts.audit, [this] { return listening_.door.get(); }),
      access_(parts),
      jobs_(parts, shards, &gate_, calls_.get(), batcher->limits().tenant_rows_per_second),
      workers_(parts, shards),
      predictions_(parts, batcher, evaluations),
      inference_(parts, batcher, evaluations, shards, gate_.bytes()) {
  guarded_.push_back(gate_.Guard(&access_, v1::AccessService::service_full_name()));
  guarded_.push_back(gate_.Guard(&jobs_, v1::JobService::service_full_name()));
  guarded_.push_back(gate_.Guard(&workers_, v1::WorkerService::service_full_name()));
  guarded_.push_back(gate_.Guard(&predictions_, v1::PredictService::service_full_name()));
  guarded_.push_back(gate_.Guard(&inference_, inference::GRPCInferenceService::service_full_name()));
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const Endpoint& endpoint, const ServiceParts& parts,
                                                              ShardStreams* shards, Batcher* batcher,
                                                              EvaluationOperations* evaluations,
                                                              ServerMetrics* metrics) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(parts, shards, batcher, evaluations, metrics));
  google::protobuf::SetLogHandler(nullptr);  // else each damaged message writes a line, which no bound limits
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  if (parts.auth->wants_tokens()) LeaveOutReflection(&builder);
  for (const auto& service : made->guarded_) builder.RegisterService(service.get());
  builder.RegisterService(&made->health_);
  auto interceptors = MakeCallRecord({parts.clock, parts.request_ids, metrics, parts.auth, parts.audit,
                                      parts.access.changes_at_once, parts.access.proxies});
  interceptors.insert(interceptors.begin(), made->gate_.BoundReplies());
  interceptors.push_back(MakeCallQuota(parts.auth, parts.clock, made->calls_, parts.access.changes_at_once));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  CHAINFLEET_RETURN_IF_ERROR(Listen(endpoint, parts.clock, &builder, &made->listening_));
  return made;
}

std::shared_ptr<grpc::Channel> GrpcServer::InProcessChannel() { return InProcessChannelTo(listening_); }

void GrpcServer::Shutdown(absl::Duration deadline) {
  health_.SetServing(false);
  shards_->Close();
  jobs_.EndWatches();
  access_.EndBackups();
  inference_.EndStreams();
  ShutDown(&listening_, deadline);
}

}  // namespace chainfleet
