// Lets worker processes in, and knows them again by their certificates.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "chainfleet/v1/worker.pb.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/tls/worker_certificate.h"

namespace chainfleet {

inline constexpr absl::Duration kCertificateLife = absl::Hours(24);
inline constexpr absl::Duration kLongestProof = absl::Minutes(15);

// Opens the authority of workers in `folder`, or makes it. It lasts for ten years.
absl::StatusOr<Signer> OpenWorkerAuthority(const std::string& folder, absl::Time now);

// Thread-safe.
class WorkerAdmission {
 public:
  // `clock` outlives it.
  WorkerAdmission(Signer authority, const Clock* clock) : authority_(std::move(authority)), clock_(clock) {}

  // Issues a certificate to the process that asks. INVALID_ARGUMENT: its names or its key; PERMISSION_DENIED /
  // BAD_SIGNATURE: the request was not signed by the key, or its incarnation is that of another key.
  absl::StatusOr<v1::JoinReply> Admit(const v1::JoinRequest& request, const std::string& tenant,
                                      const std::string& token) const;

  // Returns the certificate of the caller who sent this proof; null: the proof is damaged or old, or its certificate is
  // not valid now.
  std::shared_ptr<const WorkerCertificate> Verify(std::string_view proof) const;

  // The certificate of the authority, PEM.
  std::string AuthorityPem() const;

 private:
  struct Verified {
    std::shared_ptr<const WorkerCertificate> certificate;
    absl::Time until;
  };
  const Signer authority_;
  const Clock* const clock_;
  mutable Mutex mutex_;
  // A worker sends a proof with many calls. Cleared when full.
  mutable std::unordered_map<std::string, Verified> verified_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
