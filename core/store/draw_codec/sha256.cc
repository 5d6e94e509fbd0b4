#include "core/store/draw_codec/sha256.h"

#include <openssl/evp.h>

#include "core/base/check.h"

namespace chainfleet {

namespace {

// EVP_sha256() would look the algorithm up again for each hash.
const EVP_MD* Algorithm() {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kAlgorithm;
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  CHAINFLEET_CHECK(EVP_DigestInit_ex(context_->evp, Algorithm(), nullptr) == 1) << "OpenSSL has no SHA-256";
}

Sha256::~Sha256() = default;

void Sha256::Update(const void* data, size_t size) {
  CHAINFLEET_CHECK(EVP_DigestUpdate(context_->evp, data, size) == 1);
}

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHAINFLEET_CHECK(EVP_DigestFinal_ex(context_->evp, digest, &size) == 1);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * size_t{size});
  for (unsigned int i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

std::string Sha256Hex(const std::string& bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Hex();
}

}  // namespace chainfleet
