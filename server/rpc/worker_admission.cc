#include "server/rpc/worker_admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/domain/worker_protocol.h"
#include "core/tls/authority.h"
#include "core/wire/types_wire.h"
#include "server/rpc/worker_claims.h"

namespace chainfleet {
namespace {

constexpr size_t kMostVerified = 4096, kLongestProofBytes = 4096;
constexpr absl::Duration kAuthorityLife = absl::Hours(10 * 365 * 24);

}  // namespace

absl::StatusOr<Signer> OpenWorkerAuthority(const std::string& folder, absl::Time now) {
  const absl::Status made = InitAuthority(folder, {now - absl::Minutes(5), now + kAuthorityLife});
  if (!made.ok() && !absl::IsAlreadyExists(made)) return Annotate(made, "the authority of workers");
  return OpenAuthority(folder);
}

absl::StatusOr<v1::JoinReply> WorkerAdmission::Admit(const v1::JoinRequest& request, const std::string& tenant,
                                                     const std::string& token) const {
  CHAINFLEET_RETURN_IF_ERROR(CheckClaims(request));
  if (!IsSignedBy(request.public_key(), JoinText(request.worker(), request.incarnation()), request.signature())) {
    return WithReason(absl::PermissionDeniedError(
                          absl::StrCat("worker ", request.worker(), " did not sign its request with the key it names")),
                      "BAD_SIGNATURE");
  }
  if (request.incarnation() != IncarnationOf(request.public_key())) {
    return WithReason(absl::PermissionDeniedError(absl::StrCat("worker ", request.worker(),
                                                               " named an incarnation that is not that of its key")),
                      "BAD_SIGNATURE");
  }
  const absl::Time now = clock_->Wall();
  const Validity validity{now - absl::Minutes(5), now + kCertificateLife};
  CHAINFLEET_ASSIGN_OR_RETURN(
      std::string certificate,
      WorkerCertificate::Issue(authority_, {request.worker(), request.incarnation(), tenant, token},
                               request.public_key(), validity));
  v1::JoinReply reply;
  reply.set_certificate(std::move(certificate));
  *reply.mutable_now() = ToProto(now);
  *reply.mutable_expires() = ToProto(validity.until);
  return reply;
}

std::shared_ptr<const WorkerCertificate> WorkerAdmission::Verify(std::string_view proof) const {
  const absl::Time now = clock_->Wall();
  if (proof.size() > kLongestProofBytes) return nullptr;
  const std::string key(proof);
  {
    MutexLock lock(&mutex_);
    const auto found = verified_.find(key);
    if (found != verified_.end()) return now < found->second.until ? found->second.certificate : nullptr;
  }
  v1::WorkerProof message;
  if (!message.ParseFromString(key)) return nullptr;
  const absl::Time expires = absl::FromUnixSeconds(message.expires());
  if (expires > now + kLongestProof) return nullptr;
  auto read = WorkerCertificate::Read(message.certificate(), *authority_.certificate);
  if (!read.ok() || !read->HasSigned(ProofText(message.expires()), message.signature())) return nullptr;
  const absl::Time until = std::min(expires, read->validity().until);
  const Verified verified{std::make_shared<const WorkerCertificate>(*std::move(read)), until};
  MutexLock lock(&mutex_);
  if (verified_.size() >= kMostVerified) verified_.clear();
  verified_.insert_or_assign(key, verified);
  return now < verified.until ? verified.certificate : nullptr;
}

std::string WorkerAdmission::AuthorityPem() const { return PemOf(*authority_.certificate); }

}  // namespace chainfleet
