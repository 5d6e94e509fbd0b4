// A CoordinatorPort whose objects go straight into S3, by requests that the server signs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/executor.h"
#include "core/domain/signed_upload.h"
#include "core/store/blob_store/http_transport.h"
#include "worker/runtime/session/coordinator_port.h"

namespace chainfleet {

// Thread-safe. What the server does not sign (its objects are in a folder, it is told to, or is an older one) goes
// through it. Each attempt has a signature of its own, so an expired one needs no more than the next attempt.
class DirectUploads final : public CoordinatorPort {
 public:
  using Sign =
      std::function<void(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, Done<SignedUpload> done)>;

  // `executor` runs the puts, which block. All outlive this.
  DirectUploads(CoordinatorPort* server, Sign sign, HttpTransport* transport, Executor* executor)
      : server_(server), sign_(std::move(sign)), transport_(transport), executor_(executor) {}

  void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) override {
    server_->Synchronize(request, deadline, std::move(done));
  }
  void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) override {
    server_->CommitProgress(commit, std::move(done));
  }
  // S3 itself holds the bytes against their digest, or leaves that to the first reader. DATA_LOSS: they arrived wrong.
  // RESOURCE_EXHAUSTED / DISK_FULL. UNAVAILABLE, in S3's words: all else.
  void PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, std::shared_ptr<const std::string> bytes,
               Done<bool> done) override;
  void GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) override {
    server_->GetBlob(ref, std::move(done));
  }

 private:
  absl::Status Put(const SignedUpload& upload, const BlobRef& ref, const std::string& bytes) const;

  CoordinatorPort* const server_;
  const Sign sign_;
  HttpTransport* const transport_;
  Executor* const executor_;
  std::atomic<bool> through_server_ = false;
};

}  // namespace chainfleet
