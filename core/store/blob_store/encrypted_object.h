// Objects that are encrypted at rest: AES-256-GCM under a key of the object, which lies in the object's head, encrypted
// under a key of its tenant (an envelope).
//
//   8    "CFCRYPT1"
//   64   id of the key (ObjectKeys), padded with zeros
//   64   tenant, padded with zeros
//   12   nonce, random
//   48   the object's key, 32 random bytes: AES-256-GCM under HKDF-SHA256(key, info = tenant) with this nonce. The
//   bytes
//        before and the object's name are authenticated with it: no object can take another's place
//   ...  parts of 64 KiB, the last may be shorter or empty; each AES-256-GCM with its tag of 16 bytes. The nonce is the
//        number of the part and whether it is the last: parts cannot change places, and none can be left out
//
// The parts are STREAM (Hoang, Reyhanitabar, Rogaway and Vizár, CRYPTO 2015), so any range is read without the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/store/blob_store/object_keys.h"

namespace chainfleet {

inline constexpr int64_t kEncryptedHeadBytes = 196;

// True if an encrypted object may begin with `bytes`; it does if there are eight or more.
bool IsEncrypted(std::string_view bytes);

// Returns the encrypted form of `content` under a fresh key.
std::string Encrypt(const std::string& name, std::string_view content, const ObjectKey& key, const std::string& tenant);

// An object whose head was read. Immutable.
class EncryptedObject {
 public:
  // `head`: the first kEncryptedHeadBytes; `stored_bytes`: of the whole object. FAILED_PRECONDITION / NO_DRAW_KEY: its
  // key is not among `keys`. DATA_LOSS / DIGEST_MISMATCH: the bytes are damaged, or of an object with another name.
  static absl::StatusOr<EncryptedObject> Open(const std::string& name, std::string_view head, int64_t stored_bytes,
                                              const ObjectKeys& keys);

  // True if it is encrypted under `key` for `tenant`.
  bool IsUnder(const ObjectKey& key, const std::string& tenant) const { return key.id == key_id_ && tenant == tenant_; }
  // Returns the size of the content.
  int64_t size_bytes() const { return size_bytes_; }

  // The stored bytes that hold bytes [offset, offset + length) of the content, which is clipped at its end.
  struct StoredRange {
    int64_t offset = 0, length = 0;
  };
  StoredRange StoredRangeOf(int64_t offset, int64_t length) const;
  // Returns bytes [offset, offset + length) of the content from `stored`, the bytes of StoredRangeOf. DATA_LOSS /
  // DIGEST_MISMATCH.
  absl::StatusOr<std::string> Decrypt(int64_t offset, int64_t length, std::string_view stored) const;

 private:
  EncryptedObject() = default;

  std::string name_, key_id_, tenant_, secret_;
  int64_t size_bytes_ = 0, parts_ = 0;
};

}  // namespace chainfleet
