// CoordinatorPort over gRPC.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "chainfleet/v1/worker.grpc.pb.h"
#include "core/base/mutex.h"
#include "core/domain/signed_upload.h"
#include "worker/rpc/server_lines.h"
#include "worker/rpc/worker_credentials.h"
#include "worker/runtime/session/coordinator_port.h"

namespace chainfleet {

// Thread-safe; callbacks come from gRPC's threads. Objects travel on a connection of their own, in chunks of
// limits::kChunkBytes. With credentials the first Synchronize joins, and later ones renew the certificate. Errors carry
// the reasons that the server gave; a reply that cannot be parsed is INTERNAL.
class CoordinatorClient final : public CoordinatorPort {
 public:
  struct Options {
    std::string address;  // server's address; comma-separated for several coordinators
    // The session id sent with calls about chains and objects; empty: none.
    std::string worker = {}, incarnation = {};
    TlsFiles tls = {};                         // plaintext if there is none
    WorkerCredentials* credentials = nullptr;  // outlives the client; null: calls have none, commits are not signed
  };
  explicit CoordinatorClient(Options options);

  // Calls Stop unless it was called.
  ~CoordinatorClient() override;

  // Cancels calls in flight and waits until each `done` has run; the `done` of later calls never runs. At the end of
  // the process: call Stop, end the executor, then destroy the rest in any order.
  void Stop();

  void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) override;
  void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) override;
  void PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, std::shared_ptr<const std::string> bytes,
               Done<bool> done) override;
  void GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) override;
  // Implements DirectUploads. Errors: LEASE_FENCED; UNIMPLEMENTED from an older server.
  void SignUpload(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, Done<SignedUpload> done);

 private:
  template <typename Reactor>
  class Call;
  template <typename Request, typename Reply, typename Result>
  class Unary;
  class Joining;
  class Put;
  class Get;

  v1::WorkerSession Session() const;
  // Sets deadline and credentials and keeps `context` cancellable until Leave. False after Stop: the call must not
  // start.
  bool Enter(grpc::ClientContext* context, absl::Duration deadline, bool to_join);
  void Leave(grpc::ClientContext* context);
  void Left();  // the context that left is destroyed
  bool stopped();

  const Options options_;
  ServerLines lines_;
  Mutex mutex_;
  CondVar idle_;
  std::set<grpc::ClientContext*> calls_ CHAINFLEET_GUARDED_BY(mutex_);
  int leaving_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  bool stopped_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet
