// Order of cipher suites in the TLS of gRPC, which has no setting for it.
#pragma once

namespace chainfleet {

// Lets servers of this process choose the cipher suite, not their clients, in contexts of OpenSSL that are made later.
// It takes the place of the section `system_default` in the host's openssl.cnf, which Debian's does not have.
void PreferCiphersOfServer();

}  // namespace chainfleet
