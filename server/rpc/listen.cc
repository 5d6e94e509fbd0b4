#include "server/rpc/listen.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "absl/strings/str_cat.h"
#include "core/tls/cipher_order.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {
namespace {

constexpr unsigned kReloadSeconds = 2;

void SetBounds(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  builder->SetMaxSendMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  grpc::ResourceQuota quota("chainfleet-server");
  quota.Resize(static_cast<size_t>(limits::kServerRpcMemoryBytes));
  builder->SetResourceQuota(quota);
  // A compressed message could be inflated to any size before it is checked.
  builder->AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // Bounds the bytes that a client may send before a read. gRPC's bandwidth estimate would open windows of 16 MiB.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, static_cast<int>(limits::kStreamWindowBytes));
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              static_cast<int>(absl::ToInt64Milliseconds(limits::kSilence)));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                              static_cast<int>(absl::ToInt64Milliseconds(limits::kIdleConnection)));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kMaxConcurrentStreams);
  // A second server on the port must fail, not share it.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Clients ping every 12 s. gRPC answers pings more often than every 10 s with GOAWAY.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
}

// Changed files take effect in new connections.
std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const TlsFiles& files) {
  if (files.certificate.empty()) return grpc::InsecureServerCredentials();
  PreferCiphersOfServer();
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsServerCredentialsOptions options(std::make_shared<FileWatcherCertificateProvider>(
      files.key, files.certificate, files.authorities, kReloadSeconds));
  options.watch_identity_key_cert_pairs();
  if (!files.authorities.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace

absl::Status Listen(const Endpoint& endpoint, const Clock* clock, grpc::ServerBuilder* builder,
                    ListeningServer* listening) {
  // Keep gRPC initialised until the process ends: its shutdown may wait 10 s for a connection that broke meanwhile.
  [[maybe_unused]] static const bool kept_up = (grpc_init(), true);
  SetBounds(builder);
  const std::string& address = endpoint.address;
  const absl::Status taken =
      WithReason(absl::AlreadyExistsError(absl::StrCat(
                     "cannot listen on ", address,
                     ": the port is taken or the address is not of this host; give another with --listen")),
                 "PORT_TAKEN");
  if (address.starts_with("unix:")) {  // reachable from this host only
    builder->AddListeningPort(address, grpc::InsecureServerCredentials(), &listening->port);
    listening->server = builder->BuildAndStart();
    return listening->server == nullptr ? taken : absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<FrontDoor>> door = FrontDoor::Open(endpoint, DoorLimitsOfProcess(), clock);
  if (!door.ok()) return taken;
  using FromDescriptor = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto acceptor =
      builder->experimental().AddExternalConnectionAcceptor(FromDescriptor::FROM_FD, ServerCredentialsOf(endpoint.tls));
  listening->server = builder->BuildAndStart();
  if (listening->server == nullptr) return absl::InternalError("gRPC did not start");
  listening->door = *std::move(door);
  listening->port = listening->door->port();
  listening->door->Start(std::move(acceptor));
  return absl::OkStatus();
}

std::shared_ptr<grpc::Channel> InProcessChannelTo(const ListeningServer& listening) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  return listening.server->InProcessChannel(arguments);
}

void ShutDown(ListeningServer* listening, absl::Duration patience) {
  if (listening->door != nullptr) listening->door->Close();
  listening->server->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                           gpr_time_from_millis(absl::ToInt64Milliseconds(patience), GPR_TIMESPAN)));
  listening->server->Wait();
}

}  // namespace chainfleet
