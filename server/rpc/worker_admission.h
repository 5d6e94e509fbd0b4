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
#include "core/store/state_store/state_change.h"
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

  // Keeps the signatures of a commit, with the worker's certificate; null: a caller who has not joined, whose
  // signatures nobody can check, so none is kept. Signs the resume point for a worker that does not. PERMISSION_DENIED
  // / BAD_SIGNATURE: the worker did not sign what it must.
  absl::Status TakeSignatures(const WorkerCertificate* worker, const std::string& store_incarnation,
                              ProgressCommit* commit) const;

  // Checks who committed the resume point of a chain of `tenant` that is granted. DATA_LOSS: another one than a worker
  // or a server of this fleet, or it was committed elsewhere on the chain's path. A resume point without a proof passes
  // unless a worker that signs resume points committed the newest draws: an older release has committed it.
  absl::Status CheckResumePoint(const std::string& tenant, const ApplyResult& granted) const;

  // The certificate of the authority, PEM.
  std::string AuthorityPem() const;

 private:
  struct Verified {
    std::shared_ptr<const WorkerCertificate> certificate;
    absl::Time until;

    // Null if the certificate is not valid at that time, as after the clock was put back.
    std::shared_ptr<const WorkerCertificate> At(absl::Time now) const {
      return certificate->validity().from <= now && now < until ? certificate : nullptr;
    }
  };
  const Signer authority_;
  const Clock* const clock_;
  mutable Mutex mutex_;
  // A worker sends a proof with many calls. Cleared when full.
  mutable std::unordered_map<std::string, Verified> verified_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
