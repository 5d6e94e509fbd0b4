#include "server/rpc/identity_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/rpc/given_tokens.h"
#include "tests/support/issuer_key.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

constexpr char kIssuer[] = "https://id.example.org", kGetJob[] = "/chainfleet.v1.JobService/GetJob";

std::vector<IdentityRule> Rules(const std::vector<std::string>& texts) {
  std::vector<IdentityRule> rules;
  for (const std::string& text : texts) rules.push_back(ParseIdentityRule(text).value());
  return rules;
}

TEST(ParseIdentityRule, HasTheWordsOfALineOfTokens) {
  const IdentityRule rule = ParseIdentityRule("groups=ML Team=1 -> vision operator").value();
  EXPECT_EQ(rule.claim, "groups");
  EXPECT_EQ(rule.value, "ML Team=1");
  EXPECT_EQ(rule.principal.tenant, "vision");
  EXPECT_EQ(rule.principal.rights, RightsOf(Role::kOperator, "vision"));
  const IdentityRule by_claim = ParseIdentityRule("sub=ada -> models {org.name}").value();
  EXPECT_EQ(by_claim.tenant_claim, "org.name");
  EXPECT_EQ(by_claim.principal.rights, RightsOf(Role::kWriter, "vision") | kPutModels);
  EXPECT_FALSE(ParseIdentityRule("sub=ada -> {org} admin")->principal.may(kFleet)) << "a claim names no fleet";
  for (const char* bad :
       {"", "groups=ml", "groups -> vision", "=ml -> vision", "groups= -> vision", "a=b -> c -> d", "a=b -> Vision!",
        "a=b -> vision speech", "a=b -> {org} vision", "a=b -> {}", "a=b -> worker", "a=b -> reader writer"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseIdentityRule(bad).status())) << bad;
  }
}

class IdentityTokensTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(tokens_.ReadKeys().ok()); }

  // Valid for an hour, with these claims instead or in addition.
  std::string Claims(const std::string& more, int64_t seconds = 3600, const std::string& audience = "fleet",
                     const std::string& issuer = kIssuer) const {
    return absl::StrCat(R"({"iss":")", issuer, R"(","sub":"ada","aud":")", audience, R"(","exp":)",
                        absl::ToUnixSeconds(clock_.Wall()) + seconds, more, "}");
  }
  absl::StatusOr<Principal> Authorize(const std::string& token, const std::string& method = kGetJob) const {
    const std::string value = "Bearer " + token;
    return auth_.Authorize(method, {{"authorization", value}});
  }

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  const IssuerKey first_{"ES256", "first"}, second_{"EdDSA", "second"};
  absl::StatusOr<std::string> published_ = first_.Jwks();
  int reads_ = 0;
  IdentityTokens tokens_{
      {.issuer = kIssuer,
       .audience = "fleet",
       .keys = "keys.json",
       .rules = Rules({"groups=ops -> default admin", "groups=ml -> vision writer", "groups=shop -> vision predictor",
                       "role=reader -> {org} reader", "role=owner -> {org} admin"})},
      [this](const std::string&) {
        ++reads_;
        return published_;
      },
      &clock_,
      &executor_};
  const AccessTokens none_{nullptr, nullptr, StoredState()};
  const Authenticator auth_{TableOf({{"token", "speech"}}), &none_, nullptr, &clock_, &tokens_};
};

TEST_F(IdentityTokensTest, TheFirstRuleThatMatchesDecides) {
  struct Case {
    const char *claims, *tenant;
    unsigned rights;
  };
  for (const Case& given : {Case{R"(,"groups":["ml","ops"])", "default", RightsOf(Role::kAdmin, "default")},
                            {R"(,"groups":"ml")", "vision", RightsOf(Role::kWriter, "vision")},
                            {R"(,"groups":["none","shop"])", "vision", RightsOf(Role::kPredictor, "vision")},
                            {R"(,"role":"owner","org":"vision")", "vision", RightsOf(Role::kAdmin, "vision")},
                            {R"(,"role":"reader","org":"speech")", "speech", RightsOf(Role::kReader, "speech")}}) {
    const auto caller = tokens_.Find(first_.Token(Claims(given.claims)));
    ASSERT_TRUE(caller.ok()) << caller.status();
    EXPECT_EQ(caller->id, "oidc:ada");
    EXPECT_EQ(caller->tenant, given.tenant);
    EXPECT_EQ(caller->rights, given.rights);
  }
  for (const char* unmatched : {"", R"(,"groups":[])", R"(,"groups":"mlx")", R"(,"role":"reader")",
                                R"(,"role":"reader","org":["speech","vision"])", R"(,"role":"reader","org":"*")",
                                R"(,"role":"reader","org":"../x")", R"(,"role":"owner","org":"default")"}) {
    const absl::Status refused = Authorize(first_.Token(Claims(unmatched))).status();
    EXPECT_EQ(ReasonOf(refused), "NOT_ALLOWED") << unmatched;
    EXPECT_EQ(RefusedSubject(refused), "oidc:ada") << unmatched;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(kIssuer));
  }
  EXPECT_EQ(RefusedSubject(Authorize(first_.Token(Claims("", -61))).status()), "") << "it proves nothing";
}

TEST_F(IdentityTokensTest, ACallerMayDoWhatItsRoleMay) {
  const std::string writer = first_.Token(Claims(R"(,"groups":"ml")")),
                    shop = first_.Token(Claims(R"(,"groups":"shop")"));
  EXPECT_EQ(Authorize(writer)->tenant, "vision");
  EXPECT_EQ(Authorize(writer)->expires_at, absl::FromUnixSeconds(absl::ToUnixSeconds(clock_.Wall()) + 3600));
  EXPECT_TRUE(Authorize(writer, "/chainfleet.v1.JobService/CreateJob").ok());
  EXPECT_EQ(ReasonOf(Authorize(writer, "/chainfleet.v1.AccessService/CreateToken").status()), "NOT_ALLOWED");
  EXPECT_EQ(ReasonOf(Authorize(shop).status()), "NOT_ALLOWED");
  EXPECT_TRUE(Authorize(shop, "/chainfleet.v1.PredictService/Predict").ok());
  EXPECT_EQ(ReasonOf(Authorize(writer, "/chainfleet.v1.WorkerService/Join").status()), "NOT_ALLOWED");
  EXPECT_EQ(Authorize("token")->tenant, "speech") << "tokens of ours are as before";
  EXPECT_TRUE(absl::IsUnauthenticated(Authorize("guessed").status()));
}

TEST_F(IdentityTokensTest, AServerWithAnIssuerIsNotOpen) {
  const Authenticator alone({}, &none_, nullptr, &clock_, &tokens_);
  EXPECT_TRUE(alone.wants_tokens());
  EXPECT_TRUE(absl::IsUnauthenticated(alone.Authorize(kGetJob, {}).status()));
}

TEST_F(IdentityTokensTest, RefusesWhatIsNotForThisServerNow) {
  const std::string ml = R"(,"groups":"ml")";
  const auto at = [this](int64_t seconds) { return absl::StrCat(absl::ToUnixSeconds(clock_.Wall()) + seconds); };
  EXPECT_TRUE(Authorize(first_.Token(Claims(ml, -59))).ok()) << "clocks differ";
  EXPECT_TRUE(Authorize(first_.Token(Claims(ml + R"(,"nbf":)" + at(60)))).ok());
  for (const auto& [claims, said] : {std::pair{Claims(ml, -60), "expired"},
                                     {Claims(ml + R"(,"nbf":)" + at(61)), "not valid yet"},
                                     {Claims(ml, 3600, "shop"), "audience fleet"},
                                     {Claims(ml, 3600, "fleet", "https://id.example.org/"), "issuer"}}) {
    const absl::Status status = Authorize(first_.Token(claims)).status();
    EXPECT_EQ(ReasonOf(status), "UNAUTHENTICATED") << said;
    EXPECT_THAT(std::string(status.message()), HasSubstr(said));
  }
  EXPECT_EQ(ReasonOf(Authorize("eyJ.no.token").status()), "UNAUTHENTICATED");
}

TEST_F(IdentityTokensTest, AVerifiedTokenIsKnownUntilItExpires) {
  const std::string token = first_.Token(Claims(R"(,"groups":"ml")", 120));
  ASSERT_TRUE(Authorize(token).ok());
  clock_.Advance(absl::Seconds(179));
  EXPECT_TRUE(Authorize(token).ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnauthenticated(Authorize(token).status()));
}

TEST_F(IdentityTokensTest, AnUnknownKeyIsReadOnceInHalfAMinuteOffTheCall) {
  const std::string token = second_.Token(Claims(R"(,"groups":"ml")"));
  EXPECT_TRUE(absl::IsUnauthenticated(Authorize(token).status())) << "the keys were read right now";
  published_ = second_.Jwks();
  clock_.Advance(absl::Seconds(30));
  EXPECT_TRUE(absl::IsUnavailable(Authorize(token).status()));
  EXPECT_TRUE(absl::IsUnavailable(Authorize(token).status()));
  EXPECT_EQ(reads_, 1) << "the call itself reads nothing";
  EXPECT_EQ(executor_.RunUntilIdle(), 1);
  EXPECT_EQ(reads_, 2);
  EXPECT_TRUE(Authorize(token).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(Authorize(first_.Token(Claims(R"(,"groups":"ml")"))).status())) << "withdrawn";
  EXPECT_EQ(executor_.RunUntilIdle(), 0);
}

TEST_F(IdentityTokensTest, KeysAreReadAgainAfterMinutesAndAFailureKeepsThem) {
  const std::string token = first_.Token(Claims(R"(,"groups":"ml")"));
  ASSERT_TRUE(Authorize(token).ok());
  published_ = absl::UnavailableError("no answer");
  clock_.Advance(absl::Minutes(5));
  EXPECT_TRUE(Authorize(token).ok());
  EXPECT_EQ(executor_.RunUntilIdle(), 1);
  EXPECT_EQ(reads_, 2);
  EXPECT_TRUE(Authorize(first_.Token(Claims(R"(,"groups":"shop")")), "/chainfleet.v1.PredictService/Predict").ok());
  published_ = second_.Jwks();
  clock_.Advance(absl::Minutes(5));
  EXPECT_TRUE(Authorize(token).ok());
  EXPECT_EQ(executor_.RunUntilIdle(), 1);
  EXPECT_TRUE(absl::IsUnauthenticated(Authorize(token).status())) << "its key was withdrawn, so it is checked again";
}

TEST_F(IdentityTokensTest, WithoutAnyKeysCallersRepeatTheirCall) {
  IdentityTokens early(
      {.issuer = kIssuer, .audience = "fleet", .rules = Rules({"sub=ada -> vision"})},
      [](const std::string&) { return absl::UnavailableError("no answer"); }, &clock_, &executor_);
  EXPECT_TRUE(absl::IsUnavailable(early.ReadKeys()));
  EXPECT_TRUE(absl::IsUnavailable(early.Find(first_.Token(Claims(""))).status()));
}

}  // namespace
}  // namespace chainfleet
