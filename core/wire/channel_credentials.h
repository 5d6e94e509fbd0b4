// The credentials of client channels: plaintext or TLS.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>

#include "core/tls/tls_files.h"

namespace chainfleet {

// Plaintext without files, else TLS 1.2 or later: the server's certificate must lead to `files.authorities` (the
// system's, if empty) and name the host that is called. Changed files take effect in new connections.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const TlsFiles& files);

}  // namespace chainfleet
