// Keys of an OpenID Connect issuer, made by the test, and the tokens that they sign.
#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace chainfleet {

inline std::string Base64Url(const std::string& bytes) {
  std::string text = absl::WebSafeBase64Escape(bytes);
  text.erase(std::find(text.begin(), text.end(), '='), text.end());
  return text;
}

class IssuerKey {
 public:
  // `algorithm`: RS256, ES256 or EdDSA.
  IssuerKey(std::string algorithm, std::string id, size_t rsa_bits = 2048)
      : algorithm_(std::move(algorithm)), id_(std::move(id)), key_(Make(rsa_bits), EVP_PKEY_free) {}

  // The public key; `more` are further members.
  std::string Jwk(const std::string& more = "") const {
    const std::string begin = absl::StrCat(R"({"kid":")", id_, R"(",)", more);
    if (algorithm_ == "RS256") {
      return absl::StrCat(begin, R"("kty":"RSA","n":")", Number(OSSL_PKEY_PARAM_RSA_N), R"(","e":")",
                          Number(OSSL_PKEY_PARAM_RSA_E), R"("})");
    }
    std::string raw(256, '\0');
    size_t size = raw.size();
    EVP_PKEY_get_octet_string_param(key_.get(), OSSL_PKEY_PARAM_PUB_KEY, Bytes(&raw), raw.size(), &size);
    raw.resize(size);
    if (algorithm_ == "EdDSA") {
      return absl::StrCat(begin, R"("kty":"OKP","crv":"Ed25519","x":")", Base64Url(raw), R"("})");
    }
    return absl::StrCat(begin, R"("kty":"EC","crv":"P-256","x":")", Base64Url(raw.substr(1, 32)), R"(","y":")",
                        Base64Url(raw.substr(33)), R"("})");
  }
  std::string Jwks() const { return absl::StrCat(R"({"keys":[)", Jwk(), "]}"); }

  std::string Header() const { return absl::StrCat(R"({"alg":")", algorithm_, R"(","kid":")", id_, R"("})"); }
  std::string Token(const std::string& claims) const { return Token(Header(), claims); }
  std::string Token(const std::string& header, const std::string& claims) const {
    const std::string text = absl::StrCat(Base64Url(header), ".", Base64Url(claims));
    return absl::StrCat(text, ".", Base64Url(Sign(text)));
  }

 private:
  static unsigned char* Bytes(std::string* text) { return reinterpret_cast<unsigned char*>(text->data()); }

  EVP_PKEY* Make(size_t rsa_bits) const {
    if (algorithm_ == "RS256") return EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", rsa_bits);
    if (algorithm_ == "ES256") return EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
    return EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  }
  std::string Number(const char* name) const {
    BIGNUM* number = nullptr;
    EVP_PKEY_get_bn_param(key_.get(), name, &number);
    std::string bytes(static_cast<size_t>(BN_num_bytes(number)), '\0');
    BN_bn2bin(number, Bytes(&bytes));
    BN_free(number);
    return Base64Url(bytes);
  }
  std::string Sign(const std::string& text) const {
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EVP_DigestSignInit(context.get(), nullptr, algorithm_ == "EdDSA" ? nullptr : EVP_sha256(), nullptr, key_.get());
    std::string signature(1024, '\0');
    size_t size = signature.size();
    EVP_DigestSign(context.get(), Bytes(&signature), &size, reinterpret_cast<const unsigned char*>(text.data()),
                   text.size());
    signature.resize(size);
    if (algorithm_ != "ES256") return signature;
    const unsigned char* der = Bytes(&signature);
    ECDSA_SIG* const pair = d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(size));
    std::string raw(64, '\0');
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), Bytes(&raw), 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), Bytes(&raw) + 32, 32);
    ECDSA_SIG_free(pair);
    return raw;
  }

  const std::string algorithm_, id_;
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
};

}  // namespace chainfleet
