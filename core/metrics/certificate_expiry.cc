#include "core/metrics/certificate_expiry.h"

#include "absl/time/time.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

GaugeFamily CertificateExpiry(const CertificateFiles& files) {
  GaugeFamily family{"chainfleet_tls_certificate_expiry_timestamp_seconds",
                     "Earliest Unix time at which a certificate in the file expires.",
                     {}};
  for (const auto& [certificate, file] : files) {
    if (file.empty() || file == AuthoritiesFile("system")) continue;
    const absl::StatusOr<absl::Time> expiry = EarliestExpiry(file);
    if (!expiry.ok()) continue;
    family.samples.push_back({{{"certificate", certificate}}, absl::ToDoubleSeconds(*expiry - absl::UnixEpoch())});
  }
  return family;
}

}  // namespace chainfleet
