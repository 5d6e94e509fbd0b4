#include "core/store/blob_store/job_cipher.h"

#include <memory>

namespace chainfleet {

absl::StatusOr<std::string> JobCipher::Encrypt(const std::string& name, const std::string& job,
                                               std::string_view content) const {
  if (!has_keys_) return std::string(content);
  const std::string tenant = tenant_of_(job);
  const std::shared_ptr<const ObjectKeys> keys = keys_.Current();
  CHAINFLEET_ASSIGN_OR_RETURN(const ObjectKey* const key, keys->KeyOf(tenant));
  return chainfleet::Encrypt(name, content, *key, tenant);
}

absl::StatusOr<std::string> JobCipher::Decrypt(const std::string& name, std::string bytes) const {
  if (!IsEncrypted(bytes)) return bytes;
  CHAINFLEET_ASSIGN_OR_RETURN(const EncryptedObject object, Open(name, bytes, std::ssize(bytes)));
  return object.Decrypt(0, object.size_bytes(), std::string_view(bytes).substr(kEncryptedHeadBytes));
}

absl::StatusOr<bool> JobCipher::IsCurrent(const EncryptedObject& object, const std::string& job) const {
  const std::string tenant = tenant_of_(job);
  const std::shared_ptr<const ObjectKeys> keys = keys_.Current();
  CHAINFLEET_ASSIGN_OR_RETURN(const ObjectKey* const key, keys->KeyOf(tenant));
  return object.IsUnder(*key, tenant);
}

}  // namespace chainfleet
