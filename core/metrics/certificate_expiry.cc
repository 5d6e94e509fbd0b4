#include "core/metrics/certificate_expiry.h"

#include <algorithm>

#include "absl/time/time.h"

namespace chainfleet {

GaugeFamily CertificateExpiry(const std::vector<TlsFiles>& ports) {
  absl::Time earliest = absl::InfiniteFuture();
  for (const TlsFiles& files : ports) {
    if (files.certificate.empty()) continue;
    const auto certificate = ReadCertificate(files.certificate);
    if (certificate.ok()) earliest = std::min(earliest, ValidityOf(**certificate).until);
  }
  GaugeFamily family{"chainfleet_tls_certificate_expiry_timestamp_seconds",
                     "Earliest Unix time at which a certificate of the ports of the process expires.",
                     {}};
  if (earliest < absl::InfiniteFuture()) {
    family.samples.push_back({{}, absl::ToDoubleSeconds(earliest - absl::UnixEpoch())});
  }
  return family;
}

}  // namespace chainfleet
