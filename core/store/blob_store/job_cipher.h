// Encrypts the bytes of a job under the key of its tenant.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/reread.h"
#include "core/base/status.h"
#include "core/store/blob_store/encrypted_object.h"

namespace chainfleet {

// `name` tells the bytes from all others that these keys encrypt: bytes that were moved to another name are damaged.
// Copies share the keys. Thread-safe.
class JobCipher {
 public:
  // Returns the tenant of a job, "" if it is not known. May be called from any thread.
  using TenantOf = std::function<std::string(const std::string& job)>;

  JobCipher() = default;  // has no keys
  JobCipher(Reread<ObjectKeys> keys, TenantOf tenant_of)
      : keys_(std::move(keys)), has_keys_(!keys_.Current()->empty()), tenant_of_(std::move(tenant_of)) {}

  bool has_keys() const { return has_keys_; }

  // Returns the encrypted form, or `content` itself if there are no keys. Errors of ObjectKeys::KeyOf.
  absl::StatusOr<std::string> Encrypt(const std::string& name, const std::string& job, std::string_view content) const;
  // Returns the content of what Encrypt returned, under any of the keys. Bytes in clear, from a time without keys, are
  // returned as they are. Errors of EncryptedObject.
  absl::StatusOr<std::string> Decrypt(const std::string& name, std::string bytes) const;
  // Reads the head of encrypted bytes. Errors of EncryptedObject::Open.
  absl::StatusOr<EncryptedObject> Open(const std::string& name, std::string_view head, int64_t stored_bytes) const {
    return EncryptedObject::Open(name, head, stored_bytes, *keys_.Current());
  }
  // True if Encrypt would use the same key and tenant now. Errors of ObjectKeys::KeyOf.
  absl::StatusOr<bool> IsCurrent(const EncryptedObject& object, const std::string& job) const;

 private:
  Reread<ObjectKeys> keys_;
  bool has_keys_ = false;  // for good: only keys replace keys
  TenantOf tenant_of_;
};

}  // namespace chainfleet
