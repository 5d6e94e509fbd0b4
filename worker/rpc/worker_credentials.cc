#include "worker/rpc/worker_credentials.h"

#include <utility>

#include "core/domain/worker_protocol.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

// A proof lasts longer than it is sent: the server's clock may be corrected meanwhile.
constexpr absl::Duration kProofLife = absl::Minutes(10), kProofSent = absl::Minutes(5);

}  // namespace

WorkerCredentials::WorkerCredentials(Reread<std::string> token, const std::string& worker, const Clock* clock,
                                     bool token_printed)
    : token_(std::move(token)), clock_(clock), token_printed_(token_printed) {
  request_.set_worker(worker);
  request_.set_public_key(key_.public_key());
  request_.set_incarnation(IncarnationOf(request_.public_key()));
  request_.set_signature(key_.Sign(JoinText(worker, incarnation())));
  request_.set_signs_resume_points(true);
}

bool WorkerCredentials::joined() {
  MutexLock lock(&mutex_);
  return older_server_ || !certificate_.empty();
}

bool WorkerCredentials::MustJoin() {
  MutexLock lock(&mutex_);
  return !older_server_ && (certificate_.empty() || clock_->Monotonic() >= renew_at_);
}

void WorkerCredentials::Joined(const v1::JoinReply& reply) {
  const absl::Time now = FromProto(reply.now());
  ran_again_ = false;
  signs_segments_ = !reply.one_signature();
  MutexLock lock(&mutex_);
  certificate_ = reply.certificate();
  renew_at_ = clock_->Monotonic() + (FromProto(reply.expires()) - now) / 2;
  server_zero_ = now - clock_->Monotonic();
  proof_.clear();
}

bool WorkerCredentials::Forget(bool joins) {
  const bool runs_again = token_printed_ && joins && !ran_again_;
  if (runs_again) run_again_ = true;
  MutexLock lock(&mutex_);
  proof_.clear();
  return !std::exchange(certificate_, "").empty() || !(joins || older_server_) || runs_again;
}

void WorkerCredentials::Attach(grpc::ClientContext* context, bool to_join) {
  if (to_join || older_server_) {
    bool reads = !token_printed_;
    if (run_again_.exchange(false)) reads = ran_again_ = true;
    // May read a file or run a command, so without the lock.
    const std::shared_ptr<const std::string> token = reads ? token_.Current() : token_.Last();
    if (!token->empty()) context->AddMetadata("authorization", "Bearer " + *token);
  }
  MutexLock lock(&mutex_);
  if (certificate_.empty()) return;
  const absl::Duration now = clock_->Monotonic();
  if (proof_.empty() || now >= proof_until_) {
    v1::WorkerProof proof;
    proof.set_certificate(certificate_);
    proof.set_expires(absl::ToUnixSeconds(server_zero_ + now + kProofLife));
    proof.set_signature(key_.Sign(ProofText(proof.expires())));
    proof_ = proof.SerializeAsString();
    proof_until_ = now + kProofSent;
  }
  context->AddMetadata(kWorkerProofHeader, proof_);
}

}  // namespace chainfleet
