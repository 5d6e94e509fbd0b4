// A CoordinatorPort that puts objects directly into S3, with requests that the server signs.
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

// Thread-safe. Objects that the server does not sign go through the server: its objects are in a folder, signing is
// disabled, or it is an older server. Each attempt is signed anew, so an expired signature only needs the next attempt.
class DirectUploads final : public CoordinatorPort {
 public:
  using Sign =
      std::function<void(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, Done<SignedUpload> done)>;

  // `executor` runs the puts, which block. All arguments outlive this object.
  DirectUploads(CoordinatorPort* server, Sign sign, HttpTransport* transport, Executor* executor)
      : server_(server), sign_(std::move(sign)), transport_(transport), executor_(executor) {}

  void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) override {
    server_->Synchronize(request, deadline, std::move(done));
  }
  void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) override {
    server_->CommitProgress(commit, std::move(done));
  }
  // S3 compares the bytes with their digest, or leaves that to the first reader. DATA_LOSS: the bytes were damaged in
  // transit. RESOURCE_EXHAUSTED / DISK_FULL. UNAVAILABLE, with S3's message: other errors.
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
