// The means by which a worker proves who it is: a token to join with, then a key and a certificate of its own.
#pragma once

#include <grpcpp/client_context.h>

#include <atomic>
#include <string>

#include "absl/strings/escaping.h"
#include "chainfleet/v1/worker.pb.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/reread.h"
#include "core/tls/worker_certificate.h"

namespace chainfleet {

// Thread-safe.
class WorkerCredentials {
 public:
  // `token` is empty on a server without tokens. It is read for each join, or, if a command prints it, only for the
  // first join after a refused one. `clock` outlives the object.
  WorkerCredentials(Reread<std::string> token, const std::string& worker, const Clock* clock,
                    bool token_printed = false);

  // Names this process, by its key.
  const std::string& incarnation() const { return request_.incarnation(); }
  // False until the worker may call.
  bool joined();
  // True until the worker has joined, and again from half of the certificate's life on.
  bool MustJoin();
  const v1::JoinRequest& request() const { return request_; }
  void Joined(const v1::JoinReply& reply);
  // The server is older and knows no Join: calls send the token from now on.
  void ServerIsOlder() { older_server_ = true; }
  // A server did not accept a call, or a join. Returns true if the worker may join again: it had a certificate, another
  // call has found that out already, or a command is to print another token.
  bool Forget(bool joins);

  // Adds the proof to a call, and the token to a call that joins.
  void Attach(grpc::ClientContext* context, bool to_join = false);

  // True: the server wants a signature of each segment beside that of the resume point.
  bool signs_segments() const { return signs_segments_; }
  // In base64.
  std::string Sign(const std::string& text) const { return absl::Base64Escape(key_.Sign(text)); }

 private:
  const Reread<std::string> token_;
  const Clock* const clock_;
  const bool token_printed_;
  const SigningKey key_;
  v1::JoinRequest request_;
  Mutex mutex_;
  std::string certificate_ CHAINFLEET_GUARDED_BY(mutex_);  // empty: not joined
  absl::Duration renew_at_ CHAINFLEET_GUARDED_BY(mutex_), proof_until_ CHAINFLEET_GUARDED_BY(mutex_);  // monotonic
  absl::Time server_zero_ CHAINFLEET_GUARDED_BY(mutex_);  // the server's clock at 0 of the monotonic clock
  std::string proof_ CHAINFLEET_GUARDED_BY(mutex_);
  std::atomic<bool> older_server_ = false;
  std::atomic<bool> signs_segments_ = true;
  std::atomic<bool> run_again_ = false;  // the command, before the next join
  std::atomic<bool> ran_again_ = false;  // since the last join that a server accepted
};

}  // namespace chainfleet
