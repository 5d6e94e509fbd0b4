#include "core/store/blob_store/encrypted_object.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/tls/openssl_handles.h"

namespace chainfleet {
namespace {

constexpr std::string_view kMagic = "CFCRYPT1";
constexpr int64_t kNameBytes = 64, kNonceBytes = 12, kSecretBytes = 32, kTagBytes = 16, kPartBytes = 64 << 10;
constexpr int64_t kNamesEnd = 8 + 2 * kNameBytes;
static_assert(kEncryptedHeadBytes == kNamesEnd + kNonceBytes + kSecretBytes + kTagBytes);

using CipherHandle = std::unique_ptr<EVP_CIPHER_CTX, FreeWith<EVP_CIPHER_CTX_free>>;

const unsigned char* In(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* Out(std::string* bytes, size_t offset = 0) {
  return reinterpret_cast<unsigned char*>(bytes->data() + offset);
}
int Size(std::string_view bytes) { return static_cast<int>(bytes.size()); }

std::string Random(int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  CHAINFLEET_CHECK(RAND_bytes(Out(&bytes), static_cast<int>(size)) == 1);
  return bytes;
}

// The key of a tenant, from a line of the operator's keys.
std::string TenantSecret(const ObjectKey& key, const std::string& tenant) {
  const std::string info = "chainfleet draws of " + tenant;
  std::string secret(kSecretBytes, '\0');
  size_t size = secret.size();
  const std::unique_ptr<EVP_PKEY_CTX, FreeWith<EVP_PKEY_CTX_free>> derive(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
  CHAINFLEET_CHECK(EVP_PKEY_derive_init(derive.get()) == 1 &&
                   EVP_PKEY_CTX_set_hkdf_md(derive.get(), EVP_sha256()) == 1 &&
                   EVP_PKEY_CTX_set1_hkdf_key(derive.get(), In(key.secret), Size(key.secret)) == 1 &&
                   EVP_PKEY_CTX_add1_hkdf_info(derive.get(), In(info), Size(info)) == 1 &&
                   EVP_PKEY_derive(derive.get(), Out(&secret), &size) == 1);
  return secret;
}

// Appends the ciphertext and its tag to `out`.
void Lock(const std::string& secret, const std::string& nonce, std::string_view authenticated, std::string_view text,
          std::string* out) {
  const CipherHandle cipher(EVP_CIPHER_CTX_new());
  const size_t begin = out->size();
  out->resize(begin + text.size() + kTagBytes);
  int size = 0;
  CHAINFLEET_CHECK(EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, In(secret), In(nonce)) == 1 &&
                   EVP_EncryptUpdate(cipher.get(), nullptr, &size, In(authenticated), Size(authenticated)) == 1 &&
                   EVP_EncryptUpdate(cipher.get(), Out(out, begin), &size, In(text), Size(text)) == 1 &&
                   EVP_EncryptFinal_ex(cipher.get(), Out(out, begin + text.size()), &size) == 1 &&
                   EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, Out(out, begin + text.size())) ==
                       1);
}

// Appends the text of `locked`, ciphertext and tag, to `out`. False: something was changed.
bool Unlock(const std::string& secret, const std::string& nonce, std::string_view authenticated,
            std::string_view locked, std::string* out) {
  if (Size(locked) < kTagBytes) return false;
  const std::string_view text = locked.substr(0, locked.size() - kTagBytes);
  std::string tag(locked.substr(text.size()));
  const CipherHandle cipher(EVP_CIPHER_CTX_new());
  const size_t begin = out->size();
  out->resize(begin + text.size());
  int size = 0;
  return EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, In(secret), In(nonce)) == 1 &&
         EVP_DecryptUpdate(cipher.get(), nullptr, &size, In(authenticated), Size(authenticated)) == 1 &&
         EVP_DecryptUpdate(cipher.get(), Out(out, begin), &size, In(text), Size(text)) == 1 &&
         EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
         EVP_DecryptFinal_ex(cipher.get(), Out(out, out->size()), &size) == 1;
}

std::string Padded(const std::string& name) {
  CHAINFLEET_CHECK(std::ssize(name) <= kNameBytes);
  return name + std::string(kNameBytes - name.size(), '\0');
}

std::string NameAt(std::string_view head, size_t offset) {
  const std::string_view padded = head.substr(offset, kNameBytes);
  return std::string(padded.substr(0, padded.find('\0')));
}

std::string NonceOf(int64_t part, bool is_last) {
  std::string nonce(kNonceBytes, '\0');
  for (size_t i = 0; i < sizeof part; ++i) nonce[i] = static_cast<char>(part >> (8 * i));
  nonce.back() = static_cast<char>(is_last);
  return nonce;
}

// An empty content has one part, too.
int64_t PartsOf(int64_t size) { return std::max<int64_t>(1, (size + kPartBytes - 1) / kPartBytes); }

absl::Status Damaged(const std::string& name) {
  return WithReason(
      absl::DataLossError(absl::StrCat("object ", name, " cannot be decrypted: its stored bytes were changed")),
      "DIGEST_MISMATCH");
}

}  // namespace

bool IsEncrypted(std::string_view bytes) {
  return !bytes.empty() && bytes.substr(0, kMagic.size()) == kMagic.substr(0, bytes.size());
}

std::string Encrypt(const std::string& name, std::string_view content, const ObjectKey& key,
                    const std::string& tenant) {
  const int64_t parts = PartsOf(std::ssize(content));
  std::string out = std::string(kMagic) + Padded(key.id) + Padded(tenant);
  out.reserve(kEncryptedHeadBytes + content.size() + static_cast<size_t>(parts * kTagBytes));
  const std::string secret = Random(kSecretBytes), nonce = Random(kNonceBytes), authenticated = out + name;
  out += nonce;
  Lock(TenantSecret(key, tenant), nonce, authenticated, secret, &out);
  for (int64_t i = 0; i < parts; ++i) {
    Lock(secret, NonceOf(i, i + 1 == parts), "", content.substr(i * kPartBytes, kPartBytes), &out);
  }
  return out;
}

absl::StatusOr<EncryptedObject> EncryptedObject::Open(const std::string& name, std::string_view head,
                                                      int64_t stored_bytes, const ObjectKeys& keys) {
  if (std::ssize(head) < kEncryptedHeadBytes) return Damaged(name);
  EncryptedObject object;
  object.name_ = name;
  object.key_id_ = NameAt(head, kMagic.size());
  object.tenant_ = NameAt(head, kMagic.size() + kNameBytes);
  const ObjectKey* const key = keys.Find(object.key_id_);
  if (key == nullptr) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "object ", name, " is encrypted under the key ", object.key_id_,
                          ", which the keys of draws do not have: add its line to --draw-keys")),
                      "NO_DRAW_KEY");
  }
  const std::string nonce(head.substr(kNamesEnd, kNonceBytes));
  const std::string authenticated = std::string(head.substr(0, kNamesEnd)) + name;
  const std::string tenant_secret = TenantSecret(*key, object.tenant_);
  const int64_t stored_part = kPartBytes + kTagBytes, rest = stored_bytes - kEncryptedHeadBytes;
  object.parts_ = (rest + stored_part - 1) / stored_part;
  object.size_bytes_ = rest - object.parts_ * kTagBytes;
  if (!Unlock(tenant_secret, nonce, authenticated, head.substr(kNamesEnd + kNonceBytes, kSecretBytes + kTagBytes),
              &object.secret_) ||
      object.size_bytes_ < 0 || object.parts_ != PartsOf(object.size_bytes_)) {
    return Damaged(name);
  }
  return object;
}

EncryptedObject::StoredRange EncryptedObject::StoredRangeOf(int64_t offset, int64_t length) const {
  const int64_t end = offset + std::min(length, size_bytes_ - std::min(offset, size_bytes_));
  const int64_t first = std::min(offset / kPartBytes, parts_ - 1), last = std::max(first, (end - 1) / kPartBytes);
  return {kEncryptedHeadBytes + first * (kPartBytes + kTagBytes), (last - first + 1) * (kPartBytes + kTagBytes)};
}

absl::StatusOr<std::string> EncryptedObject::Decrypt(int64_t offset, int64_t length, std::string_view stored) const {
  const int64_t first = std::min(offset / kPartBytes, parts_ - 1);
  std::string text;
  text.reserve(stored.size());
  for (int64_t part = first; !stored.empty(); ++part) {
    const std::string_view locked = stored.substr(0, kPartBytes + kTagBytes);
    stored.remove_prefix(locked.size());
    if (!Unlock(secret_, NonceOf(part, part + 1 == parts_), "", locked, &text)) return Damaged(name_);
  }
  const int64_t skipped = std::min(offset - first * kPartBytes, std::ssize(text));
  if (skipped == 0 && length >= std::ssize(text)) return text;
  return text.substr(static_cast<size_t>(skipped), static_cast<size_t>(std::max<int64_t>(0, length)));
}

}  // namespace chainfleet
