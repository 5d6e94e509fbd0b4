#include "core/store/commit_proof/commit_proof.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/domain/tenant.h"
#include "core/store/draw_codec/object_names.h"
#include "core/tls/signing.h"

namespace chainfleet {

absl::StatusOr<WorkerCertificate> ReadCommitter(const std::string& certificate, absl::Time committed_at,
                                                const std::string& tenant,
                                                const std::vector<CertificateHandle>& authorities) {
  std::string der;
  if (!absl::Base64Unescape(certificate, &der)) return absl::UnauthenticatedError("the certificate is not base64");
  absl::StatusOr<WorkerCertificate> read = absl::UnauthenticatedError("there is no authority");
  for (const CertificateHandle& authority : authorities) {
    if (read = WorkerCertificate::Read(der, *authority); read.ok()) break;
  }
  CHAINFLEET_RETURN_IF_ERROR(read.status());
  if (committed_at < read->validity().from || committed_at > read->validity().until) {
    return absl::UnauthenticatedError("it was committed when the certificate was not valid");
  }
  const WorkerClaims& claims = read->claims();
  if (claims.tenant == tenant || claims.tenant == kEveryTenant) return read;
  return absl::UnauthenticatedError(absl::StrCat("worker ", claims.worker, " was let in for tenant ", claims.tenant,
                                                 ", and the job belongs to tenant ", tenant));
}

std::string SignedText(const SegmentRecord& record) {
  const Author& author = record.author;
  const auto name = ParseChainObjectName(record.segment.object.name);
  if (author.resume_sha256.empty() || !name) return SignedText(record.segment);
  ResumePoint point{.step = author.resume_step};
  point.proof.emplace();
  point.proof->name = ResumeObjectName(name->store_incarnation, name->chain, name->lease_epoch, author.resume_sha256);
  point.proof->last_digest = record.segment.digest;
  point.proof->with_draws = true;
  return SignedText(point);
}

absl::StatusOr<std::string> CheckResumeProof(const ChainId& chain, const ResumePoint& point,
                                             const DigestHex& last_digest, const std::string& tenant,
                                             const std::vector<CertificateHandle>& authorities) {
  const ResumeProof& proof = *point.proof;
  const auto name = ParseChainObjectName(proof.name);
  if (!name || name->kind != ChainObjectName::Kind::kResume || name->chain != chain || name->digest != point.sha256) {
    return absl::UnauthenticatedError("it has the signature of another resume point");
  }
  std::string signature;
  if (!absl::Base64Unescape(proof.signature, &signature)) {
    return absl::UnauthenticatedError("its signature is not base64");
  }
  const std::string text = SignedText(point);
  const bool by_server = proof.certificate.empty();
  if (proof.last_digest != last_digest && !(by_server && proof.last_digest.empty())) {
    return absl::UnauthenticatedError("it was committed after other draws than the chain's newest ones");
  }
  if (by_server) {
    const bool is_signed = std::ranges::any_of(
        authorities, [&](const CertificateHandle& authority) { return HasSigned(*authority, text, signature); });
    if (is_signed) return std::string();
    return absl::UnauthenticatedError("the signature is not that of a server of this fleet, or of another authority");
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const WorkerCertificate committer,
                              ReadCommitter(proof.certificate, proof.committed_at, tenant, authorities));
  if (committer.HasSigned(text, signature)) return committer.claims().worker;
  return absl::UnauthenticatedError("the signature is not that of its worker");
}

}  // namespace chainfleet
