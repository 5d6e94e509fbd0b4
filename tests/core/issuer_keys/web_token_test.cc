#include "core/store/issuer_keys/web_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/issuer_key.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kHeader[] = R"({"alg":"RS256","kid":"one"})",
               kLeastClaims[] = R"({"iss":"https://id.example.org","sub":"ada","exp":2000000000})";

std::string Text(const std::string& header, const std::string& claims, const std::string& signature = "bytes") {
  return absl::StrCat(Base64Url(header), ".", Base64Url(claims), ".", Base64Url(signature));
}

TEST(WebToken, HasWhatTheIssuerSays) {
  const auto token = ParseWebToken(
      Text(R"({"alg":"ES256","typ":"at+JWT"})",
           R"({"iss":"https://id.example.org","sub":"ada","exp":2000000000.5,"nbf":1999999999,"aud":["fleet","shop"],)"
           R"("groups":["ml","ops",7],"realm_access":{"roles":["admin"]},"https://example.org/team":"vision"})"));
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->algorithm, "ES256");
  EXPECT_EQ(token->key_id, "");
  EXPECT_EQ(token->signature, "bytes");
  EXPECT_EQ(token->issuer, "https://id.example.org");
  EXPECT_EQ(token->subject, "ada");
  EXPECT_EQ(token->expires_at, absl::FromUnixMillis(2'000'000'000'500));
  EXPECT_EQ(token->not_before, absl::FromUnixSeconds(1'999'999'999));
  for (const auto& [claim, value] : {std::pair("aud", "fleet"),
                                     {"aud", "shop"},
                                     {"groups", "ml"},
                                     {"groups", "ops"},
                                     {"realm_access.roles", "admin"},
                                     {"https://example.org/team", "vision"}}) {
    EXPECT_TRUE(token->Has(claim, value)) << claim;
  }
  EXPECT_FALSE(token->Has("groups", "7"));
  EXPECT_FALSE(token->Has("roles", "admin"));
}

TEST(WebToken, RefusesOtherFormsAndShowsNoneOfThem) {
  const std::string good = Text(kHeader, kLeastClaims);
  ASSERT_TRUE(ParseWebToken(good).ok());
  for (const std::string& bad : {std::string(),
                                 std::string("."),
                                 std::string(".."),
                                 good + ".more",
                                 good.substr(0, good.rfind('.')),
                                 good + "=",
                                 " " + good,
                                 good + "\n",
                                 Text("[]", kLeastClaims),
                                 Text(kHeader, "ada"),
                                 Text(kHeader, "\xff{}"),
                                 Text(R"({"alg":"RS256","crit":["b64"],"b64":false})", kLeastClaims),
                                 Text(R"({"typ":"logout+jwt"})", kLeastClaims),
                                 Text(R"({"typ":7})", kLeastClaims),
                                 Text(kHeader, R"({"sub":"ada","exp":2000000000})"),
                                 Text(kHeader, R"({"iss":"i","exp":2000000000})"),
                                 Text(kHeader, R"({"iss":"i","sub":"ada"})"),
                                 Text(kHeader, R"({"iss":["i"],"sub":"ada","exp":2000000000})"),
                                 Text(kHeader, R"({"iss":"i","sub":"ada","exp":"2000000000"})"),
                                 Text(kHeader, R"({"iss":"i","sub":"ada","exp":2000000000,"nbf":null})"),
                                 Text(kHeader, absl::StrCat(R"({"iss":"i","sub":"ada","exp":1,"deep":)",
                                                            std::string(20, '['), std::string(20, ']'), "}")),
                                 Text(kHeader, std::string(8192, ' ') + kLeastClaims),
                                 std::string(100'000, 'a')}) {
    const absl::Status status = ParseWebToken(bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("ada")));
  }
}

// Replies show the expiry as a Timestamp, which ends with the year 9999.
TEST(WebToken, RefusesTimesThatNoTimestampHas) {
  const auto read = [](const std::string& times) {
    return ParseWebToken(Text(kHeader, absl::StrCat(R"({"iss":"i","sub":"ada",)", times, "}"))).status();
  };
  EXPECT_TRUE(read(R"("exp":253402300799)").ok());
  EXPECT_TRUE(read(R"("exp":253402300799,"nbf":0)").ok());
  for (const char* times : {R"("exp":253402300800)", R"("exp":1e300)", R"("exp":-1)", R"("exp":-1e18)",
                            R"("exp":18446744073709551615)", R"("exp":9,"nbf":1e12)", R"("exp":9,"nbf":-1)"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(read(times))) << times;
  }
}

TEST(WebToken, RefusesNamesThatAreGivenTwice) {
  EXPECT_TRUE(ParseWebToken(Text(kHeader, R"({"iss":"i","sub":"a","exp":9,"x":{"sub":"b"},"y":{"sub":"c"}})")).ok());
  for (const char* claims : {R"({"iss":"i","sub":"ada","sub":"eve","exp":2000000000})",
                             R"({"iss":"i","sub":"ada","exp":1,"exp":2000000000})",
                             R"({"iss":"i","sub":"ada","exp":9,"x":{"roles":"a","roles":"b"}})"}) {
    EXPECT_THAT(std::string(ParseWebToken(Text(kHeader, claims)).status().message()), HasSubstr("twice")) << claims;
  }
  EXPECT_FALSE(ParseWebToken(Text(R"({"alg":"RS256","alg":"none"})", kLeastClaims)).ok());
}

}  // namespace
}  // namespace chainfleet
