// The gauge that warns before a certificate expires.
#pragma once

#include <map>
#include <string>

#include "core/metrics/metrics.h"

namespace chainfleet {

// Files of certificates by the value of the label `certificate`; "" for a file that is not given.
using CertificateFiles = std::map<std::string, std::string>;

// Returns the earliest time at which a certificate in each file expires. Files that cannot be read have no sample. Nor
// has the file of this host's authorities: some of them are always about to expire, and the host replaces them.
GaugeFamily CertificateExpiry(const CertificateFiles& files);

}  // namespace chainfleet
