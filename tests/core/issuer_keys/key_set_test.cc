#include "core/store/issuer_keys/key_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/hmac.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/issuer_key.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

constexpr char kClaims[] = R"({"iss":"https://id.example.org","sub":"ada","exp":2000000000})";
constexpr char kIssuer[] = "https://id.example.org";

SignatureCheck CheckOf(const std::string& jwks, const std::string& token) {
  return KeySet::Parse(jwks).value().Check(ParseWebToken(token).value());
}

class EachAlgorithm : public testing::TestWithParam<const char*> {
 protected:
  const IssuerKey key_{GetParam(), "one"};
};
INSTANTIATE_TEST_SUITE_P(KeySet, EachAlgorithm, testing::Values("RS256", "ES256", "EdDSA"));

TEST_P(EachAlgorithm, VerifiesWhatItsKeySigned) {
  const std::string token = key_.Token(kClaims);
  EXPECT_EQ(CheckOf(key_.Jwks(), token), SignatureCheck::kValid);
  EXPECT_EQ(CheckOf(IssuerKey(GetParam(), "one").Jwks(), token), SignatureCheck::kInvalid) << "another key of that id";
  EXPECT_EQ(CheckOf(IssuerKey(GetParam(), "two").Jwks(), token), SignatureCheck::kUnknownKey);
  const std::string unnamed = key_.Token(absl::StrCat(R"({"alg":")", GetParam(), R"("})"), kClaims);
  EXPECT_EQ(CheckOf(key_.Jwks(), unnamed), SignatureCheck::kValid);
}

TEST_P(EachAlgorithm, RefusesChangedTokens) {
  const std::string token = key_.Token(kClaims);
  const std::string signature = token.substr(token.rfind('.'));
  const std::string claims = Base64Url(R"({"iss":"https://id.example.org","sub":"eve","exp":2000000000})");
  EXPECT_EQ(CheckOf(key_.Jwks(), absl::StrCat(Base64Url(key_.Header()), ".", claims, signature)),
            SignatureCheck::kInvalid);
  EXPECT_EQ(CheckOf(key_.Jwks(), token.substr(0, token.rfind('.') + 1)), SignatureCheck::kInvalid);
  EXPECT_EQ(CheckOf(key_.Jwks(), token.substr(0, token.size() - 4)), SignatureCheck::kInvalid);
}

// The key decides on the algorithm, never the token.
TEST_P(EachAlgorithm, RefusesOtherAlgorithms) {
  for (const char* algorithm : {"none", "None", "", "HS256", "RS256", "RS384", "PS256", "ES256", "ES384", "EdDSA"}) {
    if (std::string(algorithm) == GetParam()) continue;
    const std::string header = absl::StrCat(R"({"alg":")", algorithm, R"(","kid":"one"})");
    EXPECT_EQ(CheckOf(key_.Jwks(), key_.Token(header, kClaims)), SignatureCheck::kInvalid) << algorithm;
  }
}

TEST(KeySet, DoesNotTakeAPublicKeyForASecret) {
  const IssuerKey key("RS256", "one");
  const std::string text = absl::StrCat(Base64Url(R"({"alg":"HS256","kid":"one"})"), ".", Base64Url(kClaims));
  for (const std::string& secret : {key.Jwk(), key.Jwks(), std::string()}) {
    std::string mac(EVP_MAX_MD_SIZE, '\0');
    unsigned size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), reinterpret_cast<unsigned char*>(mac.data()),
         &size);
    EXPECT_EQ(CheckOf(key.Jwks(), absl::StrCat(text, ".", Base64Url(mac.substr(0, size)))), SignatureCheck::kInvalid);
  }
}

TEST(KeySet, IgnoresKeysThatItCannotUse) {
  const IssuerKey good("ES256", "good"), weak("RS256", "weak", 1024), other("RS256", "other");
  const std::string set = absl::StrCat(
      R"({"keys":[7,{},{"kty":"oct","k":"c2VjcmV0","kid":"oct"},)", weak.Jwk(), ",", other.Jwk(R"("use":"enc",)"), ",",
      other.Jwk(R"("alg":"RS512",)"), R"(,{"kty":"EC","crv":"P-256","kid":"off","x":"AAAA","y":"AAAA"},)", good.Jwk(),
      R"(,{"kty":"EC","crv":"P-256","kid":"curve","x":")", Base64Url(std::string(32, '\1')), R"(","y":")",
      Base64Url(std::string(32, '\1')), R"("}]})");
  EXPECT_EQ(CheckOf(set, good.Token(kClaims)), SignatureCheck::kValid);
  for (const IssuerKey* key : {&weak, &other}) {
    EXPECT_EQ(CheckOf(set, key->Token(kClaims)), SignatureCheck::kUnknownKey);
  }
  for (const char* bad : {"", "[]", "{}", R"({"keys":{}})", R"({"keys":[]})", R"({"keys":[{"kty":"oct","k":"AA"}]})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(KeySet::Parse(bad).status())) << bad;
  }
}

class ReadKeySetTest : public testing::Test {
 protected:
  absl::Status Read(const std::string& issuer, const std::string& place) {
    return ReadKeySet(issuer, place,
                      [this](const std::string& from) -> absl::StatusOr<std::string> {
                        read_.push_back(from);
                        const auto found = places_.find(from);
                        if (found == places_.end()) return absl::UnavailableError("no answer");
                        return found->second;
                      })
        .status();
  }

  const IssuerKey key_{"EdDSA", "one"};
  std::map<std::string, std::string> places_ = {{"/etc/keys.json", key_.Jwks()},
                                                {"https://id.example.org/keys", key_.Jwks()}};
  std::vector<std::string> read_;
};

TEST_F(ReadKeySetTest, ReadsWhereItIsTold) {
  EXPECT_TRUE(Read(kIssuer, "/etc/keys.json").ok());
  EXPECT_TRUE(Read(kIssuer, "https://id.example.org/keys").ok());
  EXPECT_TRUE(absl::IsUnavailable(Read(kIssuer, "/etc/other.json")));
  places_["/etc/keys.json"] = "{}";
  EXPECT_THAT(std::string(Read(kIssuer, "/etc/keys.json").message()), HasSubstr("/etc/keys.json"));
}

TEST_F(ReadKeySetTest, FindsTheKeysAtTheIssuer) {
  const std::string place = "https://id.example.org/.well-known/openid-configuration";
  places_[place] = R"({"issuer":"https://id.example.org","jwks_uri":"https://id.example.org/keys"})";
  EXPECT_TRUE(Read(kIssuer, "").ok());
  EXPECT_EQ(read_, (std::vector<std::string>{place, "https://id.example.org/keys"}));
  for (const char* bad : {"", "[]", R"({"issuer":"https://evil.example.org","jwks_uri":"https://id.example.org/keys"})",
                          R"({"issuer":"https://id.example.org","jwks_uri":"http://id.example.org/keys"})",
                          R"({"issuer":"https://id.example.org","jwks_uri":"/etc/keys.json"})",
                          R"({"issuer":"https://id.example.org"})"}) {
    places_[place] = bad;
    EXPECT_TRUE(absl::IsInvalidArgument(Read(kIssuer, ""))) << bad;
  }
}

}  // namespace
}  // namespace chainfleet
