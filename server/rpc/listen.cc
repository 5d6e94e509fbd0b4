#include "server/rpc/listen.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

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
  // Clients ping every 12 s; more often than every 10 s is answered with GOAWAY.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
}

}  // namespace

absl::StatusOr<ListeningServer> Listen(const std::string& address, grpc::ServerBuilder* builder) {
  // gRPC stays up until the process ends: its clean-up may wait 10 s for a connection that broke in an unlucky moment.
  [[maybe_unused]] static const bool kept_up = (grpc_init(), true);
  grpc::EnableDefaultHealthCheckService(true);
  SetBounds(builder);
  ListeningServer listening;
  builder->AddListeningPort(address, grpc::InsecureServerCredentials(), &listening.port);
  listening.server = builder->BuildAndStart();
  if (listening.server != nullptr && listening.port != 0) return listening;
  return WithReason(absl::AlreadyExistsError(absl::StrCat(
                        "cannot listen on ", address,
                        ": the port is taken or the address is not of this host; give another with --listen")),
                    "PORT_TAKEN");
}

void ShutDown(grpc::Server* server, absl::Duration patience) {
  server->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                gpr_time_from_millis(absl::ToInt64Milliseconds(patience), GPR_TIMESPAN)));
  server->Wait();
}

}  // namespace chainfleet
