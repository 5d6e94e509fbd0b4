#include "server/rpc/worker_admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/domain/worker_protocol.h"
#include "core/store/commit_proof/commit_proof.h"
#include "core/store/draw_codec/object_names.h"
#include "core/tls/authority.h"
#include "core/wire/types_wire.h"
#include "server/rpc/worker_claims.h"

namespace chainfleet {
namespace {

constexpr size_t kMostVerified = 4096, kLongestProofBytes = 4096;
constexpr absl::Duration kAuthorityLife = absl::Hours(10 * 365 * 24);

bool IsSignatureOf(const WorkerCertificate& worker, const std::string& text, const std::string& base64) {
  std::string signature;
  return absl::Base64Unescape(base64, &signature) && worker.HasSigned(text, signature);
}

absl::Status NotSigned(const char* what, const ProgressCommit& commit) {
  return WithReason(
      absl::PermissionDeniedError(absl::StrCat("the ", what, " that chain ", ToString(commit.chain),
                                               " commits is not signed by worker ", commit.author.worker)),
      "BAD_SIGNATURE");
}

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
      WorkerCertificate::Issue(authority_,
                               {request.worker(), request.incarnation(), tenant, token, request.signs_resume_points()},
                               request.public_key(), validity));
  v1::JoinReply reply;
  reply.set_certificate(std::move(certificate));
  *reply.mutable_now() = ToProto(now);
  *reply.mutable_expires() = ToProto(validity.until);
  reply.set_one_signature(true);
  return reply;
}

std::shared_ptr<const WorkerCertificate> WorkerAdmission::Verify(std::string_view proof) const {
  const absl::Time now = clock_->Wall();
  if (proof.size() > kLongestProofBytes) return nullptr;
  const std::string key(proof);
  {
    MutexLock lock(&mutex_);
    const auto found = verified_.find(key);
    if (found != verified_.end()) return found->second.At(now);
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
  return verified.At(now);
}

absl::Status WorkerAdmission::TakeSignatures(const WorkerCertificate* worker, const std::string& store_incarnation,
                                             ProgressCommit* commit) const {
  Author& author = commit->author;
  const std::string of_draws = std::exchange(author.signature, "");
  ResumePoint& point = commit->resume_point;
  if (worker == nullptr) {
    point.proof.reset();
    return absl::OkStatus();
  }
  const bool has_signature = point.proof && !point.proof->signature.empty();
  if (has_signature || worker->claims().signs_resume_points) {
    if (!has_signature || point.proof->last_digest.empty() ||
        !IsSignatureOf(*worker, SignedText(point), point.proof->signature)) {
      return NotSigned("resume point", *commit);
    }
    point.proof->certificate = worker->base64();
  }
  if (commit->segment) {
    const bool covered = of_draws.empty() && has_signature && point.proof->with_draws &&
                         point.proof->last_digest == commit->segment->digest;
    if (!covered && !IsSignatureOf(*worker, SignedText(*commit->segment), of_draws)) {
      return NotSigned("segment of draws", *commit);
    }
    author.certificate = worker->base64();
    author.signature = covered ? point.proof->signature : of_draws;
    if (covered) {
      author.resume_step = point.step;
      author.resume_sha256 = point.sha256;
    }
  }
  if (!has_signature) {
    point.proof.emplace();
    point.proof->name = ResumeObjectName(store_incarnation, commit->chain, commit->lease_epoch, point.sha256);
    if (commit->segment) point.proof->last_digest = commit->segment->digest;
    const std::string signature = SignText(authority_, SignedText(point));
    if (signature.empty()) return absl::InternalError("OpenSSL cannot sign the resume point");
    point.proof->signature = absl::Base64Escape(signature);
  }
  point.proof->committed_at = clock_->Wall();
  return absl::OkStatus();
}

absl::Status WorkerAdmission::CheckResumePoint(const std::string& tenant, const ApplyResult& granted) const {
  const ChainRow& row = granted.chains.front();
  const auto refuse = [&](const std::string& why) {
    return absl::DataLossError(
        absl::StrCat("the resume point at step ", row.step, " is not trusted: ", why,
                     ". Restore the state store from a backup or submit the job again. If the authority of workers is "
                     "new, append the former ca.crt to former.crt in its folder (--worker-authority, else authority in "
                     "the data directory) and restart the server"));
  };
  if (granted.resume_point && granted.resume_point->proof) {
    const auto signer = CheckResumeProof(row.id, *granted.resume_point, row.last_digest, tenant, authority_.trusted);
    return signer.ok() ? absl::OkStatus() : refuse(std::string(signer.status().message()));
  }
  if (!granted.newest_segment) return absl::OkStatus();
  const SegmentRecord& newest = *granted.newest_segment;
  const auto committer = ReadCommitter(newest.author.certificate, newest.committed_at, tenant, authority_.trusted);
  if (!committer.ok() || !committer->claims().signs_resume_points) return absl::OkStatus();
  return refuse("it has no signature, but worker " + committer->claims().worker +
                ", which committed the newest draws, signs resume points");
}

std::string WorkerAdmission::AuthorityPem() const { return PemOf(*authority_.certificate); }

}  // namespace chainfleet
