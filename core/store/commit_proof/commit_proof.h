// Checks who committed draws and resume points, by the certificates and signatures in their records.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/tls/worker_certificate.h"

namespace chainfleet {

// Reads the certificate (base64) of a worker that committed for a chain of `tenant` at that time. UNAUTHENTICATED: it
// is from none of the authorities, was not valid then, or lets the worker hold chains of another tenant only.
absl::StatusOr<WorkerCertificate> ReadCommitter(const std::string& certificate, absl::Time committed_at,
                                                const std::string& tenant,
                                                const std::vector<CertificateHandle>& authorities);

// Returns the text that the author of the record, whose object has the name of a segment, has signed.
std::string SignedText(const SegmentRecord& record);

// Checks that `point`, which has a proof, was committed for this chain, after the segment with the digest
// `last_digest`, by a worker of `tenant` or, for a worker that does not sign, by the server. Returns the worker, or ""
// for the server. UNAUTHENTICATED. The caller checks the bytes by their digest.
absl::StatusOr<std::string> CheckResumeProof(const ChainId& chain, const ResumePoint& point,
                                             const DigestHex& last_digest, const std::string& tenant,
                                             const std::vector<CertificateHandle>& authorities);

}  // namespace chainfleet
