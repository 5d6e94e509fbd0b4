// Encrypts what chains write, draws and resume points, before another store keeps it. Other objects pass unchanged.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/store/blob_store/blob_store.h"
#include "core/store/blob_store/job_cipher.h"

namespace chainfleet {

// Sizes and bytes are those of the contents. Objects in clear, from a time without keys, are read as they are. Without
// keys nothing is encrypted, and a read of an encrypted object from its first byte is refused. Besides BlobStore's
// errors, calls return those of ObjectKeys::KeyOf and EncryptedObject. Thread-safe.
class EncryptedBlobStore final : public BlobStore {
 public:
  EncryptedBlobStore(std::shared_ptr<BlobStore> stored, Reread<ObjectKeys> keys, JobCipher::TenantOf tenant_of)
      : stored_(std::move(stored)), cipher_(std::move(keys), std::move(tenant_of)) {}

  absl::Status Put(const std::string& name, const ByteSource& content) override;
  absl::Status Replace(const std::string& name, const ByteSource& content) override;
  absl::StatusOr<std::string> Get(const std::string& name) const override;
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override;
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override {
    return stored_->List(prefix);
  }
  absl::Status ListPages(const std::string& prefix, const PageVisitor& visit) const override {
    return stored_->ListPages(prefix, visit);
  }
  absl::Status Delete(const std::string& name) override;
  bool encrypts() const override { return cipher_.has_keys(); }
  // Encrypts, under the same keys, what the state store keeps of chains.
  const JobCipher& cipher() const { return cipher_; }

  // Encrypts the object anew if it is a chain's and is in clear, or under another key than that of its tenant now.
  // Returns whether it did. Nobody may delete the object meanwhile.
  absl::StatusOr<bool> Renew(const std::string& name);

 private:
  using Head = std::shared_ptr<const EncryptedObject>;  // null: the object is in clear

  // True for objects that are encrypted if there are keys.
  bool Encrypts(const std::string& name) const;
  absl::StatusOr<std::string> Encrypted(const std::string& name, const ByteSource& content) const;
  absl::StatusOr<Head> HeadOf(const std::string& name) const;
  void Forget(const std::string& name) const;

  const std::shared_ptr<BlobStore> stored_;
  const JobCipher cipher_;
  mutable Mutex mutex_;
  mutable std::map<std::string, Head> heads_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet
