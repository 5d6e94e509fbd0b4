#include "core/store/blob_store/encrypted_blob_store.h"

#include "core/store/draw_codec/object_names.h"

namespace chainfleet {
namespace {

constexpr size_t kMostHeads = 4096;

std::string JobOf(const std::string& name) { return ParseChainObjectName(name)->chain.job; }

}  // namespace

bool EncryptedBlobStore::Encrypts(const std::string& name) const {
  return cipher_.has_keys() && ParseChainObjectName(name).has_value();
}

absl::StatusOr<std::string> EncryptedBlobStore::Encrypted(const std::string& name, const ByteSource& content) const {
  if (content.path().empty()) return cipher_.Encrypt(name, JobOf(name), content.in_memory());
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, content.ReadAll());
  return cipher_.Encrypt(name, JobOf(name), bytes);
}

absl::Status EncryptedBlobStore::Put(const std::string& name, const ByteSource& content) {
  if (!Encrypts(name)) return stored_->Put(name, content);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string encrypted, Encrypted(name, content));
  const absl::Status put = stored_->Put(name, encrypted);
  // The same content never has the same bytes again.
  return absl::IsAlreadyExists(put) ? CompareObject(*this, name, content) : put;
}

absl::Status EncryptedBlobStore::Replace(const std::string& name, const ByteSource& content) {
  if (!Encrypts(name)) return stored_->Replace(name, content);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string encrypted, Encrypted(name, content));
  Forget(name);
  const absl::Status replaced = stored_->Replace(name, encrypted);
  Forget(name);
  return replaced;
}

absl::StatusOr<std::string> EncryptedBlobStore::Get(const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(std::string bytes, stored_->Get(name));
  if (!ParseChainObjectName(name)) return bytes;
  return cipher_.Decrypt(name, std::move(bytes));
}

absl::StatusOr<std::string> EncryptedBlobStore::GetRange(const std::string& name, int64_t offset,
                                                         int64_t length) const {
  if (!Encrypts(name)) {
    CHAINFLEET_ASSIGN_OR_RETURN(std::string bytes, stored_->GetRange(name, offset, length));
    const bool may_be = offset == 0 && IsEncrypted(bytes) && ParseChainObjectName(name);
    if (may_be) CHAINFLEET_RETURN_IF_ERROR(HeadOf(name).status());
    return bytes;
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const Head head, HeadOf(name));
  if (head == nullptr) return stored_->GetRange(name, offset, length);
  const EncryptedObject::StoredRange range = head->StoredRangeOf(offset, length);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string stored, stored_->GetRange(name, range.offset, range.length));
  absl::StatusOr<std::string> content = head->Decrypt(offset, length, stored);
  if (!content.ok()) Forget(name);
  return content;
}

absl::StatusOr<int64_t> EncryptedBlobStore::SizeBytes(const std::string& name) const {
  if (!Encrypts(name)) return stored_->SizeBytes(name);
  CHAINFLEET_ASSIGN_OR_RETURN(const Head head, HeadOf(name));
  return head == nullptr ? stored_->SizeBytes(name) : head->size_bytes();
}

absl::Status EncryptedBlobStore::Delete(const std::string& name) {
  const absl::Status deleted = stored_->Delete(name);
  Forget(name);
  return deleted;
}

absl::StatusOr<bool> EncryptedBlobStore::Renew(const std::string& name) {
  if (!Encrypts(name)) return false;
  CHAINFLEET_ASSIGN_OR_RETURN(const Head head, HeadOf(name));
  if (head != nullptr) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool current, cipher_.IsCurrent(*head, JobOf(name)));
    if (current) return false;
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string content, Get(name));
  CHAINFLEET_RETURN_IF_ERROR(Replace(name, content));
  return true;
}

absl::StatusOr<EncryptedBlobStore::Head> EncryptedBlobStore::HeadOf(const std::string& name) const {
  {
    MutexLock lock(&mutex_);
    const auto it = heads_.find(name);
    if (it != heads_.end()) return it->second;
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, stored_->GetRange(name, 0, kEncryptedHeadBytes));
  Head head;
  if (IsEncrypted(bytes)) {
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t stored_bytes, stored_->SizeBytes(name));
    CHAINFLEET_ASSIGN_OR_RETURN(EncryptedObject object, cipher_.Open(name, bytes, stored_bytes));
    head = std::make_shared<const EncryptedObject>(std::move(object));
  }
  MutexLock lock(&mutex_);
  if (heads_.size() >= kMostHeads) heads_.clear();
  return heads_[name] = std::move(head);
}

void EncryptedBlobStore::Forget(const std::string& name) const {
  MutexLock lock(&mutex_);
  heads_.erase(name);
}

}  // namespace chainfleet
