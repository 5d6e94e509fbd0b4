// The worker's connections to the server. It only dials out.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "core/tls/tls_files.h"

namespace chainfleet {

// Opens one connection per `purpose` ("control", "blobs", "shards"), so that big streams never delay a heartbeat.
// Keepalive after 20 s, with 10 s to answer; reconnects within 2 s. Connects in the background.
// REQUIRES: CheckTlsFiles accepts `tls`.
std::shared_ptr<grpc::Channel> DialServer(const std::string& address, const std::string& purpose, const TlsFiles& tls);

}  // namespace chainfleet
