#include "worker/rpc/worker_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include "core/base/limits.h"
#include "core/wire/channel_credentials.h"

namespace chainfleet {

std::shared_ptr<grpc::Channel> DialServer(const std::string& address, const std::string& purpose, const TlsFiles& tls) {
  grpc::ChannelArguments arguments;
  // Channels with equal arguments share one connection; this private argument separates them.
  arguments.SetString("chainfleet.purpose", purpose);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);  // also the time a connection attempt may take
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  return grpc::CreateCustomChannel(address, ChannelCredentialsOf(tls), arguments);
}

}  // namespace chainfleet
