#include "core/tls/signing.h"

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

void SetTime(ASN1_TIME* field, absl::Time time) { ASN1_TIME_set(field, absl::ToTimeT(time)); }

}  // namespace

absl::StatusOr<Signer> OpenAuthority(const std::string& folder) {
  absl::StatusOr<CertificateHandle> certificate = ReadCertificate(folder + "/ca.crt");
  if (absl::IsNotFound(certificate.status())) {
    return absl::NotFoundError(absl::StrCat(folder, " has no authority: make one with `chainfleet pki init`"));
  }
  CHAINFLEET_RETURN_IF_ERROR(certificate.status());
  CHAINFLEET_ASSIGN_OR_RETURN(KeyHandle key, ReadKey(folder + "/ca.key"));
  absl::StatusOr<std::vector<CertificateHandle>> trusted = ReadCertificates(folder + "/former.crt");
  if (absl::IsNotFound(trusted.status())) trusted.emplace();
  CHAINFLEET_RETURN_IF_ERROR(trusted.status());
  X509_up_ref(certificate->get());
  trusted->emplace(trusted->begin(), certificate->get());
  return Signer{*std::move(certificate), std::move(key), *std::move(trusted)};
}

CertificateHandle Blank(const std::string& name, EVP_PKEY* key, const Validity& validity) {
  CertificateHandle certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  std::array<unsigned char, 16> serial{};
  RAND_bytes(serial.data(), serial.size());
  serial[0] = static_cast<unsigned char>(0x40 | (serial[0] & 0x3f));  // positive, and without leading zeros
  ASN1_STRING_set(X509_get_serialNumber(certificate.get()), serial.data(), serial.size());
  SetTime(X509_getm_notBefore(certificate.get()), validity.from);
  SetTime(X509_getm_notAfter(certificate.get()), validity.until);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool Sign(X509* certificate, const Signer& authority) {
  X509_set_issuer_name(certificate, X509_get_subject_name(authority.certificate.get()));
  return AddExtension(certificate, authority.certificate.get(), NID_authority_key_identifier, "keyid:always") &&
         X509_sign(certificate, authority.key.get(), EVP_sha256()) > 0;
}

std::string SignText(const Signer& authority, const std::string& text) {
  const DigestHandle digest(EVP_MD_CTX_new());
  size_t size = 0;
  if (EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, authority.key.get()) != 1 ||
      EVP_DigestSign(digest.get(), nullptr, &size, UnsignedBytes(text), text.size()) != 1) {
    return "";
  }
  std::string signature(size, '\0');  // as long as it may be
  auto* const bytes = reinterpret_cast<unsigned char*>(signature.data());
  if (EVP_DigestSign(digest.get(), bytes, &size, UnsignedBytes(text), text.size()) != 1) return "";
  signature.resize(size);
  return signature;
}

bool HasSigned(const X509& authority, const std::string& text, const std::string& signature) {
  const DigestHandle digest(EVP_MD_CTX_new());
  const bool has_signed =
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, X509_get0_pubkey(&authority)) == 1 &&
      EVP_DigestVerify(digest.get(), UnsignedBytes(signature), signature.size(), UnsignedBytes(text), text.size()) == 1;
  ERR_clear_error();
  return has_signed;
}

}  // namespace chainfleet
