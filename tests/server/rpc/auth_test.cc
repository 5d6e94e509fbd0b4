#include "server/rpc/auth.h"

#include <spdlog/spdlog.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "chainfleet/v1/access.pb.h"
#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "chainfleet/v1/worker.pb.h"
#include "core/base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "server/rpc/identity_tokens.h"
#include "tests/server/rpc/contract_methods.h"
#include "tests/server/rpc/given_tokens.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kOne[] = "The-first-of-all-tokens", kTwo[] = "The-second-of-all-tokens",
               kThree[] = "The-third-of-all-tokens";

std::string Lines(const std::vector<std::string>& lines) { return absl::StrJoin(lines, "\n"); }
std::string Line(const char* token, const std::string& words) { return std::string(token) + " " + words; }

const Principal& At(const TokenTable& tokens, const std::string& token) { return tokens.at(Sha256Hex(token)); }

TEST(ParseTokens, ATokenHasATenantAndRights) {
  const TokenTable tokens =
      *ParseTokens(Lines({"", Line(kOne, ""), Line(kTwo, "\tvision  operator\r"), Line(kThree, "models speech")}));
  EXPECT_EQ(tokens.size(), 3u);
  EXPECT_EQ(At(tokens, kOne).id, Sha256Hex(kOne).substr(0, 12));
  EXPECT_EQ(At(tokens, kOne).tenant, "default");
  EXPECT_EQ(At(tokens, kOne).rights, RightsOf(Role::kWriter, kDefaultTenant));
  EXPECT_EQ(At(tokens, kTwo).tenant, "vision");
  EXPECT_EQ(At(tokens, kTwo).rights, RightsOf(Role::kOperator, "vision"));
  EXPECT_EQ(At(tokens, kThree).tenant, "speech");
  EXPECT_EQ(At(tokens, kThree).rights, RightsOf(Role::kWriter, "speech") | kPutModels);
}

TEST(ParseTokens, ALineHasAtMostOneRole) {
  const TokenTable tokens =
      *ParseTokens(Lines({kOne, Line(kTwo, "vision predictor"), Line(kThree, "models reader speech")}));
  EXPECT_EQ(At(tokens, kTwo).rights, kPredict);
  EXPECT_EQ(At(tokens, kTwo).tenant, "vision");
  EXPECT_EQ(At(tokens, kThree).rights, RightsOf(Role::kReader, "speech") | kPutModels);
  EXPECT_EQ(At(tokens, kThree).tenant, "speech");
  EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(Line(kOne, "reader operator")).status()));
  for (const Role role : {Role::kPredictor, Role::kWriter, Role::kOperator}) {
    const TokenTable alone = *ParseTokens(Lines({Line(kOne, EnumName(role)), Line(kTwo, "worker")}));
    EXPECT_EQ(At(alone, kOne).rights, RightsOf(role, kDefaultTenant))
        << EnumName(role) << ": alone, and no admin for that";
  }
}

TEST(ParseTokens, ALoneTokenOfAFileThatHadOthersIsNoAdmins) {
  EXPECT_TRUE(ParseTokens(kOne).value().begin()->second.may(kAdminister));
  const TokenTable left = ParseTokens(kOne, std::nullopt, /*has_issuer=*/false, /*lone_is_admin=*/false).value();
  EXPECT_FALSE(left.begin()->second.may(kAdminister));
  EXPECT_EQ(NumCallers(left), 1);
}

TEST(ParseTokens, AWorkersTokenIsMarkedOrStandsApart) {
  for (const auto& tokens : {ParseTokens(Lines({kOne, Line(kTwo, "worker")})), ParseTokens(kOne, kTwo)}) {
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(At(*tokens, kTwo).rights, kJoin);
    EXPECT_EQ(At(*tokens, kTwo).tenant, kEveryTenant);
    EXPECT_EQ(At(*tokens, kOne).rights, RightsOf(Role::kAdmin, kDefaultTenant)) << "the only caller is its own admin";
  }
}

TEST(ParseTokens, OperatorsAndAdminsAreTheFleetsOnlyInTheTenantDefault) {
  const TokenTable tokens = *ParseTokens(
      Lines({Line(kOne, "default operator"), Line(kTwo, "vision admin"), Line(kThree, "vision operator models")}));
  EXPECT_TRUE(At(tokens, kOne).may(kFleet | kOperate | kPutModels));
  EXPECT_EQ(At(tokens, kOne).only_tenant(), std::nullopt);
  EXPECT_TRUE(At(tokens, kTwo).may(kAdminister | kOperate));
  EXPECT_FALSE(At(tokens, kTwo).may(kFleet) || At(tokens, kTwo).may(kPutModels));
  EXPECT_EQ(At(tokens, kTwo).only_tenant(), "vision");
  EXPECT_TRUE(At(tokens, kThree).may(kPutModels)) << "by the word";
  EXPECT_FALSE(At(tokens, kThree).may(kFleet));
  const TokenTable alone = *ParseTokens(Line(kOne, "vision models"));
  EXPECT_EQ(At(alone, kOne).rights, RightsOf(Role::kAdmin, "vision") | kPutModels);
}

TEST(ParseTokens, AWorkersTokenMayHaveATenant) {
  const TokenTable tokens = *ParseTokens(Lines({kOne, Line(kTwo, "vision worker")}));
  EXPECT_EQ(At(tokens, kTwo).tenant, "vision");
  EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(Lines({kOne, Line(kTwo, "worker models")})).status()));
}

TEST(ParseTokens, NoVariableMeansNoTokensAndABlankOneIsRefused) {
  EXPECT_THAT(ParseTokens(std::nullopt).value(), IsEmpty());
  for (const char* blank : {"", " \n", "\r\n\t"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(blank).status())) << blank;
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(kOne, blank).status())) << blank;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(std::nullopt, kTwo).status())) << "callers would be shut out";
  EXPECT_EQ(ParseTokens(std::nullopt, kTwo, /*has_issuer=*/true).value().size(), 1u) << "callers have tokens of it";
  EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens("", kTwo, /*has_issuer=*/true).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(Line(kOne, "worker")).status()));
}

TEST(ParseTokens, RefusesTokensOfFewerThan128Bits) {
  EXPECT_TRUE(ParseTokens("4d1f0c1e9b7a8a02cc7713de77be41d9").ok());
  EXPECT_TRUE(ParseTokens("q0Xb3mWc9sT2kLr7vYe1uA").ok());
  for (const char* weak : {"XyZ", "q0Xb3mWc9sT2kLr7vYe1u", "4d1f0c1e9b7a8a02cc7713de77be41d"}) {
    EXPECT_THAT(std::string(ParseTokens(weak).status().message()), AllOf(HasSubstr("128 bits"), Not(HasSubstr(weak))));
    EXPECT_FALSE(ParseTokens(kOne, weak).ok());
  }
}

TEST(ParseTokens, NamesTheWrongLineAndNoToken) {
  for (const std::string& wrong : {Line(kTwo, "vision extra"), Line(kTwo, "Vision!"), Line(kThree, kTwo),
                                   Line(kOne, "vision"), Line(kTwo, "worker models"), Line(kTwo, "worker operator")}) {
    const absl::Status status = ParseTokens(Lines({kOne, wrong})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("line 2"), Not(HasSubstr(kOne)), Not(HasSubstr(kTwo))));
  }
}

TEST(RoleOf, IsTheRoleThatGaveTheRights) {
  for (const char* tenant : {kDefaultTenant, "vision"}) {
    for (const Role role :
         {Role::kWriter, Role::kReader, Role::kPredictor, Role::kOperator, Role::kAdmin, Role::kWorker}) {
      EXPECT_EQ(RoleOf(RightsOf(role, tenant)), role) << EnumName(role);
      EXPECT_EQ(RoleOf(RightsOf(role, tenant) | kPutModels), role) << EnumName(role);
    }
  }
}

class AuthorizeTest : public testing::Test {
 protected:
  absl::StatusOr<Principal> With(const std::string& token, const std::string& method) const {
    const std::string value = "Bearer " + token;
    return auth_.Authorize(method, {{"authorization", value}});
  }
  static std::vector<std::string> Methods() {
    std::vector<std::string> methods;
    for (const auto* method : ContractMethods()) methods.push_back(GrpcPath(*method));
    EXPECT_GT(methods.size(), 50u);
    return methods;
  }

  const FakeClock clock_;
  const AccessTokens none_{nullptr, nullptr, StoredState()};
  const Authenticator auth_{TableOf({{"predictor", "vision", Role::kPredictor},
                                     {"reader", "vision", Role::kReader},
                                     {"user", "vision"},
                                     {"modeller", "speech", Role::kWriter, kPutModels},
                                     {"operator", "default", Role::kOperator},
                                     {"admin", "default", Role::kAdmin},
                                     {"vision-operator", "vision", Role::kOperator},
                                     {"vision-admin", "vision", Role::kAdmin},
                                     {"worker", kEveryTenant, Role::kWorker}}),
                            &none_, nullptr, &clock_};
};

// The matrix of every role and every method of every service.
TEST_F(AuthorizeTest, EachRoleMayCallTheMethodsOfTheRolesBelow) {
  const std::vector<std::string> roles = {"predictor", "reader", "user", "modeller", "operator", "admin"};
  for (const std::string& method : Methods()) {
    bool may = false;
    for (const std::string& role : roles) {
      may = may || role == LeastRole(method);
      const absl::StatusOr<Principal> caller = With(role, method);
      EXPECT_EQ(caller.ok(), may) << role << " " << method;
      EXPECT_EQ(ReasonOf(caller.status()), may ? "" : "NOT_ALLOWED") << role << " " << method;
    }
  }
}

TEST_F(AuthorizeTest, AnAdminOfATenantMayCallAllButWhatConcernsTheFleet) {
  for (const std::string& method : Methods()) {
    EXPECT_EQ(With("vision-operator", method).ok(), With("operator", method).ok()) << method;
    const bool is_of_all =
        method.ends_with("/Backup") || method.ends_with("/ReadObject") || method.ends_with("/Restore");
    const absl::Status theirs = With("vision-admin", method).status();
    EXPECT_EQ(theirs.ok(), !is_of_all && With("admin", method).ok()) << method;
    if (!is_of_all) continue;
    EXPECT_EQ(ReasonOf(theirs), "NOT_ALLOWED") << method;
    EXPECT_THAT(std::string(theirs.message()), HasSubstr("an admin of the fleet"));
  }
}

TEST_F(AuthorizeTest, AWorkersTokenLetsItJoinAndMakesNoOtherCall) {
  for (const std::string& method : Methods()) {
    const std::string refused = method == "/chainfleet.v1.WorkerService/Join" ? "" : "NOT_ALLOWED";
    EXPECT_EQ(ReasonOf(With("worker", method).status()), refused) << method;
    EXPECT_TRUE(absl::IsUnauthenticated(auth_.Authorize(method, {}).status())) << method;
  }
}

TEST_F(AuthorizeTest, ReturnsTheTenantAndRefusesUnknownTokensAndMethods) {
  EXPECT_EQ(With("user", "/chainfleet.v1.JobService/GetJob")->tenant, "vision");
  EXPECT_TRUE(absl::IsUnauthenticated(With("guessed", "/chainfleet.v1.JobService/GetJob").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(auth_.Authorize("/chainfleet.v1.JobService/GetJob", {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(With("operator", "/somebody.Else/Calls").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(With("operator", "").status()));
}

TEST_F(AuthorizeTest, HealthNeedsNoTokenAndAServerWithoutTokensNeedsNone) {
  EXPECT_TRUE(auth_.Authorize("/grpc.health.v1.Health/Check", {}).ok());
  const Authenticator open({}, &none_, nullptr, &clock_);
  EXPECT_TRUE(open.Authorize("/chainfleet.v1.WorkerService/Synchronize", {})->may(kWork));
  EXPECT_TRUE(open.Authorize("/chainfleet.v1.JobService/DrainWorker", {})->may(kOperate));
}

TEST(Authenticator, KnowsStoredTokensUntilTheyExpire) {
  FakeClock clock;
  StoredState state;
  state.tokens = {{.sha256 = Sha256Hex("reads"),
                   .tenant = "vision",
                   .role = Role::kReader,
                   .expires_at = clock.Wall() + absl::Hours(1)},
                  {.sha256 = Sha256Hex("models"),
                   .tenant = "speech",
                   .puts_models = true,
                   .expires_at = clock.Wall() + absl::Hours(2)}};
  const AccessTokens stored(nullptr, nullptr, state);
  const Authenticator auth({}, &stored, nullptr, &clock);
  EXPECT_TRUE(auth.wants_tokens()) << "a server that has tokens is not open";
  EXPECT_TRUE(absl::IsUnauthenticated(auth.Authorize("/chainfleet.v1.JobService/GetJob", {}).status()));
  const auto with = [&](const std::string& token) {
    const std::string value = "Bearer " + token;
    return auth.Authorize("/chainfleet.v1.JobService/GetJob", {{"authorization", value}});
  };
  EXPECT_EQ(with("reads")->tenant, "vision");
  EXPECT_EQ(with("reads")->id, Sha256Hex("reads").substr(0, 12));
  EXPECT_EQ(with("reads")->rights, RightsOf(Role::kReader, "vision"));
  EXPECT_EQ(with("models")->rights, RightsOf(Role::kWriter, "speech") | kPutModels);
  EXPECT_TRUE(absl::IsUnauthenticated(with(Sha256Hex("reads")).status())) << "the digest is no token";
  clock.Advance(absl::Hours(1));
  EXPECT_TRUE(absl::IsUnauthenticated(with("reads").status()));
  EXPECT_TRUE(with("models").ok());
}

TEST(Authenticator, KnowsThatAnotherTokenHasAnId) {
  const FakeClock clock;
  const std::string fixed = Sha256Hex("fixed"), made = Sha256Hex("made");
  StoredState state;
  state.tokens = {{.sha256 = made, .tenant = "vision"}};
  const AccessTokens stored(nullptr, nullptr, state);
  const Authenticator auth(TableOf({{"fixed", "default"}}), &stored, nullptr, &clock);
  for (const std::string& known : {fixed, made}) {
    EXPECT_FALSE(auth.HasOtherOfId(known)) << "the same token";
    for (const char digit : {'0', 'f'}) EXPECT_TRUE(auth.HasOtherOfId(TokenId(known) + std::string(52, digit)));
  }
  EXPECT_FALSE(auth.HasOtherOfId(Sha256Hex("new")));
}

class ChangingTokens : public testing::Test {
 protected:
  absl::Status With(const std::string& token) {
    const std::string value = "Bearer " + token;
    return auth_.Authorize("/chainfleet.v1.JobService/GetJob", {{"authorization", value}}).status();
  }

  FakeClock clock_;
  const AccessTokens none_{nullptr, nullptr, StoredState()};
  std::optional<std::string> lines_ = Line(kOne, "admin");
  const Authenticator auth_{*Reread<TokenTable>::Open("tokens", [this] { return ParseTokens(lines_); }), &none_,
                            nullptr, &clock_};
};

TEST_F(ChangingTokens, AreKnownAndRefusedAfterTheChange) {
  EXPECT_TRUE(absl::IsUnauthenticated(With(kTwo)));
  lines_ = Lines({Line(kTwo, "admin"), Line(kThree, "reader")});
  EXPECT_TRUE(With(kTwo).ok());
  EXPECT_TRUE(With(kThree).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(With(kOne)));
  EXPECT_TRUE(absl::IsUnauthenticated(auth_.CheckStillKnown({TokenId(Sha256Hex(kOne))})));
}

TEST_F(ChangingTokens, StayWhileTheFileIsWrongAndNeverOpenTheServer) {
  for (const std::optional<std::string>& wrong :
       {std::optional<std::string>(""), std::optional<std::string>(Line(kTwo, "two words more")),
        std::optional<std::string>(), std::optional<std::string>("weak")}) {
    lines_ = wrong;
    EXPECT_TRUE(With(kOne).ok());
    EXPECT_TRUE(absl::IsUnauthenticated(With(kTwo)));
    EXPECT_TRUE(absl::IsUnauthenticated(With("")));
    EXPECT_TRUE(auth_.wants_tokens());
  }
}

TEST(Authenticator, WorkersStayWhileTheirTokenLetsInThoseOfTheirTenant) {
  const FakeClock clock;
  const AccessTokens none(nullptr, nullptr, StoredState());
  std::string words = "worker";
  const auto read = [&] { return ParseTokens(Lines({Line(kOne, "admin"), Line(kTwo, words)})); };
  const Authenticator auth(*Reread<TokenTable>::Open("tokens", read), &none, nullptr, &clock);
  const auto stays = [&](const std::string& tenant) {
    return auth.CheckStillKnown({TokenId(Sha256Hex(kTwo)), tenant, kWork | kJoin}).ok();
  };
  EXPECT_TRUE(stays(kEveryTenant));
  words = "vision worker";
  EXPECT_FALSE(stays(kEveryTenant));
  EXPECT_TRUE(stays("vision"));
  for (const char* others : {"speech worker", "vision admin", "vision"}) {
    words = others;
    EXPECT_FALSE(stays("vision")) << others;
  }
}

class FleetAdminWarning : public testing::Test {
 protected:
  FleetAdminWarning() { InitLog("auth_test", "info"); }
  ~FleetAdminWarning() override { spdlog::set_default_logger(before_); }

  bool IsGiven(const std::string& given, const std::vector<AccessToken>& made = {},
               const std::string& rule = "") const {
    StoredState state;
    state.tokens = made;
    const AccessTokens stored(nullptr, nullptr, state);
    IdentityOptions options;
    if (!rule.empty()) options.rules = {ParseIdentityRule(rule).value()};
    const IdentityTokens identities(options, nullptr, &clock_, nullptr);
    const TokenTable table = given.empty() ? TokenTable() : ParseTokens(given).value();
    testing::internal::CaptureStderr();
    Authenticator(table, &stored, nullptr, &clock_, rule.empty() ? nullptr : &identities).WarnWithoutFleetAdmin();
    return !testing::internal::GetCapturedStderr().empty();
  }

  FakeClock clock_;

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(FleetAdminWarning, IsGivenIfNoTokenAndNoRuleMakesAnAdminOfTheFleet) {
  const AccessToken fleets = {
      .tenant = "default", .role = Role::kAdmin, .expires_at = clock_.Wall() + absl::Seconds(1)};
  AccessToken theirs = fleets, operators = fleets;
  theirs.sha256 = Sha256Hex("theirs");
  theirs.tenant = "vision";
  operators.role = Role::kOperator;
  EXPECT_FALSE(IsGiven("")) << "everyone may do everything";
  EXPECT_FALSE(IsGiven(kOne));
  for (const std::string& given :
       {Line(kOne, "vision"), Line(kOne, "vision admin"), Line(kOne, "operator"), Lines({kOne, kTwo})}) {
    EXPECT_TRUE(IsGiven(given)) << given;
    EXPECT_TRUE(IsGiven(given, {theirs, operators}, "role=owner -> {org} admin")) << given;
    EXPECT_FALSE(IsGiven(given, {fleets})) << given;
    EXPECT_FALSE(IsGiven(given, {}, "role=owner -> admin")) << given;
  }
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(IsGiven(Line(kOne, "operator"), {fleets})) << "it has expired";
}

// An ending server returns UNAVAILABLE, so that clients of every kind repeat the call at the next server.
TEST(Authenticator, RefusesAllButHealthChecksAtTheEnd) {
  const FakeClock clock;
  const AccessTokens none(nullptr, nullptr, StoredState());
  Authenticator open({}, &none, nullptr, &clock), guarded(TableOf({{"token", "vision"}}), &none, nullptr, &clock);
  for (Authenticator* auth : {&open, &guarded}) {
    auth->RefuseAll();
    EXPECT_TRUE(absl::IsUnavailable(auth->Authorize("/chainfleet.v1.JobService/GetJob", {}).status()));
    EXPECT_TRUE(auth->Authorize("/grpc.health.v1.Health/Check", {}).ok());
  }
}

}  // namespace
}  // namespace chainfleet
