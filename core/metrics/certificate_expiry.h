// The gauge that warns before a certificate expires.
#pragma once

#include <vector>

#include "core/metrics/metrics.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

// Returns the earliest time at which a certificate of a process's ports expires. Ports without TLS, and files that
// cannot be read, do not count; no sample if none is left.
GaugeFamily CertificateExpiry(const std::vector<TlsFiles>& ports);

}  // namespace chainfleet
