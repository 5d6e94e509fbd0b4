// A certificate authority for a fleet that has none of its own: a folder with ca.crt and ca.key, and NAME.crt and
// NAME.key for each certificate. Keys are ECDSA P-256. Key files are readable by their owner only.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tls/signing.h"

namespace chainfleet {

// Makes an authority in `folder`, which is created if it is missing. ALREADY_EXISTS: the folder has one.
absl::Status InitAuthority(const std::string& folder, const Validity& validity);

// Issues a certificate for servers and clients. `hosts`: the DNS names and IP addresses at which others reach the
// holder; empty for a client. Returns the path of the certificate. INVALID_ARGUMENT: the name is not one that CheckName
// accepts, or a host is neither a name nor an address. ALREADY_EXISTS: NAME has one.
// NOT_FOUND: the folder has no authority.
absl::StatusOr<std::string> IssueCertificate(const std::string& folder, const std::string& name,
                                             const std::vector<std::string>& hosts, const Validity& validity);

// Replaces the certificate of `name` by one with the same key and hosts. Servers and workers load it by themselves.
absl::StatusOr<std::string> RenewCertificate(const std::string& folder, const std::string& name,
                                             const Validity& validity);

}  // namespace chainfleet
