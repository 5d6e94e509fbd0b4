#include "core/store/issuer_keys/key_set.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/param_build.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/store/issuer_keys/json_text.h"
#include "core/tls/openssl_handles.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;
using Handle = std::shared_ptr<EVP_PKEY>;
template <typename T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

constexpr size_t kCoordinateBytes = 32, kSignatureBytes = 64, kMostExponentBytes = 8;
constexpr int kFewestRsaBits = 2048, kMostRsaBits = 8192;

Owned<BIGNUM> NumberOf(const std::string& bytes) {
  return {BN_bin2bn(UnsignedBytes(bytes), static_cast<int>(bytes.size()), nullptr), BN_free};
}

// Null: OpenSSL refuses the key, such as a point that is not on its curve.
Handle MakeKey(const char* type, OSSL_PARAM_BLD* build) {
  const Owned<OSSL_PARAM> params(OSSL_PARAM_BLD_to_param(build), OSSL_PARAM_free);
  const Owned<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY* key = nullptr;
  if (EVP_PKEY_fromdata_init(context.get()) > 0) {
    EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get());
  }
  return {key, EVP_PKEY_free};
}

Handle RsaKey(const std::string& modulus, const std::string& exponent) {
  if (modulus.size() > kMostRsaBits / 8 + 1 || exponent.size() > kMostExponentBytes) return nullptr;
  const Owned<BIGNUM> n = NumberOf(modulus), e = NumberOf(exponent);
  const Owned<OSSL_PARAM_BLD> build(OSSL_PARAM_BLD_new(), OSSL_PARAM_BLD_free);
  OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
  OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
  Handle key = MakeKey("RSA", build.get());
  const int bits = key == nullptr ? 0 : EVP_PKEY_get_bits(key.get());
  return bits >= kFewestRsaBits && bits <= kMostRsaBits ? key : nullptr;
}

Handle P256Key(const std::string& x, const std::string& y) {
  if (x.size() != kCoordinateBytes || y.size() != kCoordinateBytes) return nullptr;
  const std::string point = absl::StrCat("\x04", x, y);
  const Owned<OSSL_PARAM_BLD> build(OSSL_PARAM_BLD_new(), OSSL_PARAM_BLD_free);
  OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(build.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size());
  return MakeKey("EC", build.get());
}

// Sets the algorithm and the key that the members of a JWK describe; null if it is of another type or malformed.
Handle ReadKey(const Json& jwk, std::string* algorithm) {
  const auto bytes = [&jwk](const char* name) { return DecodeBase64Url(TextOf(jwk, name)).value_or(""); };
  const std::string type = TextOf(jwk, "kty"), curve = TextOf(jwk, "crv");
  if (type == "RSA") {
    *algorithm = "RS256";
    return RsaKey(bytes("n"), bytes("e"));
  }
  if (type == "EC" && curve == "P-256") {
    *algorithm = "ES256";
    return P256Key(bytes("x"), bytes("y"));
  }
  if (type != "OKP" || curve != "Ed25519") return nullptr;
  *algorithm = "EdDSA";
  const std::string raw = bytes("x");
  return {EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, UnsignedBytes(raw), raw.size()), EVP_PKEY_free};
}

// OpenSSL wants the two numbers of an ES256 signature in DER. "": they are not two numbers of 32 bytes.
std::string DerOf(const std::string& signature) {
  if (signature.size() != kSignatureBytes) return "";
  const Owned<ECDSA_SIG> pair(ECDSA_SIG_new(), ECDSA_SIG_free);
  ECDSA_SIG_set0(pair.get(), NumberOf(signature.substr(0, kCoordinateBytes)).release(),
                 NumberOf(signature.substr(kCoordinateBytes)).release());
  std::string der(static_cast<size_t>(i2d_ECDSA_SIG(pair.get(), nullptr)), '\0');
  auto* out = reinterpret_cast<unsigned char*>(der.data());
  i2d_ECDSA_SIG(pair.get(), &out);
  return der;
}

bool HasSigned(EVP_PKEY* key, const WebToken& token) {
  const EVP_MD* const digest = token.algorithm == "EdDSA" ? nullptr : EVP_sha256();
  const std::string signature = token.algorithm == "ES256" ? DerOf(token.signature) : token.signature;
  const DigestHandle context(EVP_MD_CTX_new());
  return EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), UnsignedBytes(signature), signature.size(), UnsignedBytes(token.signed_text),
                          token.signed_text.size()) == 1;
}

}  // namespace

absl::StatusOr<KeySet> KeySet::Parse(const std::string& jwks) {
  const Json json = Json::parse(jwks, nullptr, /*allow_exceptions=*/false);
  const auto list = json.find("keys");
  if (!json.is_object() || list == json.end() || !list->is_array()) {
    return absl::InvalidArgumentError("is no JSON Web Key Set");
  }
  KeySet set;
  for (const Json& jwk : *list) {
    if (!jwk.is_object() || (jwk.contains("use") && TextOf(jwk, "use") != "sig")) continue;
    Key key{.id = TextOf(jwk, "kid")};
    key.handle = ReadKey(jwk, &key.algorithm);
    const bool is_for_it = !jwk.contains("alg") || TextOf(jwk, "alg") == key.algorithm;
    if (key.handle != nullptr && is_for_it) set.keys_.push_back(std::move(key));
  }
  if (!set.keys_.empty()) return set;
  return absl::InvalidArgumentError("has no key for RS256 (2048 bits or more), ES256 or EdDSA (Ed25519)");
}

SignatureCheck KeySet::Check(const WebToken& token) const {
  SignatureCheck check = SignatureCheck::kUnknownKey;
  for (const Key& key : keys_) {
    if (!token.key_id.empty() && key.id != token.key_id) continue;
    check = SignatureCheck::kInvalid;
    if (key.algorithm == token.algorithm && HasSigned(key.handle.get(), token)) return SignatureCheck::kValid;
  }
  return check;
}

absl::StatusOr<KeySet> ReadKeySet(const std::string& issuer, const std::string& place, const ReadPlace& read) {
  std::string from = place;
  if (from.empty()) {
    const std::string address =
        absl::StrCat(std::string(absl::StripSuffix(issuer, "/")), "/.well-known/openid-configuration");
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, read(address));
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    from = json.is_object() && TextOf(json, "issuer") == issuer ? TextOf(json, "jwks_uri") : "";
    const bool is_secure = absl::StartsWith(from, "https://") ||
                           (absl::StartsWith(from, "http://") && absl::StartsWith(issuer, "http://"));
    if (!is_secure) {
      return absl::InvalidArgumentError(
          absl::StrCat(address, " is not of issuer ", issuer, ", or has no jwks_uri with https://"));
    }
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string jwks, read(from));
  absl::StatusOr<KeySet> keys = KeySet::Parse(jwks);
  return keys.ok() ? std::move(keys) : Annotate(keys.status(), from);
}

}  // namespace chainfleet
