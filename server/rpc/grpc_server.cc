#include "server/rpc/grpc_server.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "server/rpc/rpc_metrics.h"

namespace chainfleet {
namespace {

void SetBounds(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  builder->SetMaxSendMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  grpc::ResourceQuota quota("chainfleet-server");
  quota.Resize(static_cast<size_t>(limits::kServerRpcMemoryBytes));
  builder->SetResourceQuota(quota);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kMaxConcurrentStreams);
  // A second server on the port must fail, not share it.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Clients ping every 20 s; more often than every 10 s is answered with GOAWAY.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
}

}  // namespace

GrpcServer::GrpcServer(const ServiceParts& parts, ShardStreams* shards, PredictRouter* router, Evaluator* evaluator)
    : shards_(shards), jobs_(parts, shards), workers_(parts, shards), predictions_(parts, router, evaluator) {}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const std::string& address, const ServiceParts& parts,
                                                              ShardStreams* shards, PredictRouter* router,
                                                              Evaluator* evaluator, ServerMetrics* metrics) {
  // gRPC stays up until the process ends: its clean-up may wait 10 s for a connection that broke in an unlucky moment.
  [[maybe_unused]] static const bool kept_up = (grpc_init(), true);
  std::unique_ptr<GrpcServer> made(new GrpcServer(parts, shards, router, evaluator));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetBounds(&builder);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &made->port_);
  builder.RegisterService(&made->jobs_);
  builder.RegisterService(&made->workers_);
  builder.RegisterService(&made->predictions_);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeRpcMetrics(parts.clock, metrics));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  made->server_ = builder.BuildAndStart();
  if (made->server_ == nullptr || made->port_ == 0) {
    return WithReason(absl::AlreadyExistsError(absl::StrCat(
                          "cannot listen on ", address,
                          ": the port is taken or the address is not of this host; give another with --listen")),
                      "PORT_TAKEN");
  }
  return made;
}

void GrpcServer::Shutdown(absl::Duration deadline) {
  server_->GetHealthCheckService()->SetServingStatus(false);
  shards_->Close();
  jobs_.EndWatches();
  server_->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                 gpr_time_from_millis(absl::ToInt64Milliseconds(deadline), GPR_TIMESPAN)));
  server_->Wait();
}

}  // namespace chainfleet
