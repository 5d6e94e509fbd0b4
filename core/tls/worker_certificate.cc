#include "core/tls/worker_certificate.h"

#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <sodium.h>

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/check.h"
#include "core/tls/tls_files.h"

namespace chainfleet {
namespace {

constexpr char kScheme[] = "chainfleet:";  // URI in subjectAltName: chainfleet:WORKER/INCARNATION/TENANT/TOKEN
// X.509's word for a key that signs the contents that its owner commits. Older readers do not look at it.
constexpr char kUsageOfAll[] = "critical,digitalSignature,nonRepudiation";
constexpr size_t kKeyBytes = crypto_sign_PUBLICKEYBYTES, kIncarnationBytes = 16;

using NamesHandle = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;

std::string RawKey(const EVP_PKEY* key) {
  std::string raw(kKeyBytes, '\0');
  size_t size = raw.size();
  const bool has = EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(raw.data()), &size) == 1;
  return has && size == kKeyBytes ? raw : "";
}

KeyHandle PublicKey(const std::string& raw) {
  return KeyHandle(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, UnsignedBytes(raw), raw.size()));
}

std::string UriOf(const X509* certificate) {
  const NamesHandle names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1) return "";
  const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) return "";
  const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)), static_cast<size_t>(ASN1_STRING_length(uri))};
}

// libsodium signs and verifies segments, in two fifths of OpenSSL's time. OpenSSL makes and reads the certificates.
void InitSodium() {
  static const bool ready = sodium_init() >= 0;
  CHAINFLEET_CHECK(ready);
}

absl::Status NoWorker(const char* why) {
  return absl::UnauthenticatedError(absl::StrCat("the certificate of the worker ", why));
}

}  // namespace

SigningKey::SigningKey() : public_key_(kKeyBytes, '\0') {
  static_assert(sizeof(secret_) == crypto_sign_SECRETKEYBYTES);
  InitSodium();
  crypto_sign_keypair(reinterpret_cast<unsigned char*>(public_key_.data()), secret_.data());
}

SigningKey::~SigningKey() { sodium_memzero(secret_.data(), secret_.size()); }

std::string SigningKey::Sign(const std::string& text) const {
  std::string signature(crypto_sign_BYTES, '\0');
  crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr, UnsignedBytes(text), text.size(),
                       secret_.data());
  return signature;
}

std::string IncarnationOf(const std::string& public_key) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(UnsignedBytes(public_key), public_key.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return absl::BytesToHexString(digest.substr(0, kIncarnationBytes));
}

bool IsSignedBy(const std::string& public_key, const std::string& text, const std::string& signature) {
  InitSodium();
  return public_key.size() == kKeyBytes && signature.size() == crypto_sign_BYTES &&
         crypto_sign_verify_detached(UnsignedBytes(signature), UnsignedBytes(text), text.size(),
                                     UnsignedBytes(public_key)) == 0;
}

absl::StatusOr<std::string> WorkerCertificate::Issue(const Signer& authority, const WorkerClaims& claims,
                                                     const std::string& public_key, const Validity& validity) {
  const KeyHandle key = PublicKey(public_key);
  if (key == nullptr) return absl::InvalidArgumentError("the public key is not an Ed25519 key of 32 bytes");
  const CertificateHandle certificate = Blank("chainfleet worker", key.get(), validity);
  X509* const own = certificate.get();
  const std::string uri =
      absl::StrCat("URI:", kScheme, claims.worker, "/", claims.incarnation, "/", claims.tenant, "/", claims.token);
  const bool made = AddExtension(own, nullptr, NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(own, nullptr, NID_key_usage,
                                 claims.signs_resume_points ? kUsageOfAll : "critical,digitalSignature") &&
                    AddExtension(own, nullptr, NID_subject_alt_name, uri);
  unsigned char* bytes = nullptr;
  const int size = made && chainfleet::Sign(own, authority) ? i2d_X509(own, &bytes) : 0;
  if (size <= 0) return absl::InternalError(absl::StrCat("OpenSSL cannot sign the certificate of ", claims.worker));
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

absl::StatusOr<WorkerCertificate> WorkerCertificate::Read(const std::string& der, const X509& authority) {
  const unsigned char* begin = UnsignedBytes(der);
  const CertificateHandle certificate(d2i_X509(nullptr, &begin, static_cast<long>(der.size())));
  if (certificate == nullptr || begin != UnsignedBytes(der) + der.size()) return NoWorker("cannot be read");
  if (X509_verify(certificate.get(), X509_get0_pubkey(&authority)) != 1) {
    return NoWorker("is from another authority");
  }
  WorkerCertificate read;
  read.base64_ = absl::Base64Escape(der);
  const EVP_PKEY* const key = X509_get0_pubkey(certificate.get());
  read.validity_ = ValidityOf(*certificate);
  const std::string uri = UriOf(certificate.get());
  std::vector<std::string> parts = absl::StrSplit(absl::StripPrefix(uri, kScheme), '/');
  if (key == nullptr || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 || !uri.starts_with(kScheme) || parts.size() != 4) {
    return NoWorker("names no worker");
  }
  read.public_key_ = RawKey(key);
  read.claims_ = {std::move(parts[0]), std::move(parts[1]), std::move(parts[2]), std::move(parts[3]),
                  (X509_get_key_usage(certificate.get()) & KU_NON_REPUDIATION) != 0};
  return read;
}

bool WorkerCertificate::HasSigned(const std::string& text, const std::string& signature) const {
  return IsSignedBy(public_key_, text, signature);
}

}  // namespace chainfleet
