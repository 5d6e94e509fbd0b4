#include "server/rpc/auth.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "chainfleet/v1/worker.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

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

TEST(ParseTokens, ATokenHasATenantAndRights) {
  const TokenTable tokens =
      *ParseTokens(Lines({"", Line(kOne, ""), Line(kTwo, "\tvision  operator\r"), Line(kThree, "models speech")}));
  EXPECT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens.at(kOne).tenant, "default");
  EXPECT_EQ(tokens.at(kOne).rights, kCall);
  EXPECT_EQ(tokens.at(kTwo).tenant, "vision");
  EXPECT_EQ(tokens.at(kTwo).rights, kOperatorRights);
  EXPECT_EQ(tokens.at(kThree).tenant, "speech");
  EXPECT_EQ(tokens.at(kThree).rights, kCall | kPutModels);
}

TEST(ParseTokens, AWorkersTokenIsMarkedOrStandsApart) {
  for (const auto& tokens : {ParseTokens(Lines({kOne, Line(kTwo, "worker")})), ParseTokens(kOne, kTwo)}) {
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(tokens->at(kTwo).rights, kWork);
    EXPECT_EQ(tokens->at(kOne).rights, kOperatorRights) << "the only caller is its own operator";
  }
}

TEST(ParseTokens, NoVariableMeansNoTokensAndABlankOneIsRefused) {
  EXPECT_THAT(ParseTokens(std::nullopt).value(), IsEmpty());
  for (const char* blank : {"", " \n", "\r\n\t"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(blank).status())) << blank;
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(kOne, blank).status())) << blank;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseTokens(std::nullopt, kTwo).status())) << "callers would be shut out";
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
  for (const std::string& wrong : {Line(kTwo, "vision extra"), Line(kTwo, "Vision!"), Line(kOne, "vision"),
                                   Line(kTwo, "worker vision"), Line(kTwo, "worker operator")}) {
    const absl::Status status = ParseTokens(Lines({kOne, wrong})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("line 2"), Not(HasSubstr(kOne)), Not(HasSubstr(kTwo))));
  }
}

class AuthorizeTest : public testing::Test {
 protected:
  absl::StatusOr<Principal> With(const std::string& token, const std::string& method) const {
    const std::string value = "Bearer " + token;
    return auth_.Authorize(method, {{"authorization", value}});
  }
  static std::vector<std::string> MethodsOf(const std::string& service) {
    const auto* found = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    std::vector<std::string> methods;
    for (int i = 0; found != nullptr && i < found->method_count(); ++i) {
      methods.push_back("/" + service + "/" + found->method(i)->name());
    }
    EXPECT_FALSE(methods.empty()) << service;
    return methods;
  }

  const Authenticator auth_{{{"user", {"vision"}},
                             {"operator", {"default", kOperatorRights}},
                             {"modeller", {"speech", kCall | kPutModels}},
                             {"worker", {"default", kWork}}}};
};

// The rights of every kind of token for every method of every service.
TEST_F(AuthorizeTest, OnlyWorkersAreWorkersAndOnlyOperatorsOperate) {
  for (const std::string& method : MethodsOf("chainfleet.v1.WorkerService")) {
    EXPECT_TRUE(With("worker", method).ok()) << method;
    for (const char* caller : {"user", "operator", "modeller"}) {
      EXPECT_EQ(ReasonOf(With(caller, method).status()), "NOT_ALLOWED") << caller << method;
    }
  }
  for (const char* service : {"chainfleet.v1.JobService", "chainfleet.v1.PredictService"}) {
    for (const std::string& method : MethodsOf(service)) {
      EXPECT_EQ(ReasonOf(With("worker", method).status()), "NOT_ALLOWED") << method;
      EXPECT_TRUE(With("operator", method).ok()) << method;
      const bool drains = method.ends_with("/DrainWorker"), puts = method.ends_with("/PutModel");
      EXPECT_EQ(With("user", method).ok(), !drains && !puts) << method;
      EXPECT_EQ(With("modeller", method).ok(), !drains) << method;
    }
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
  const Authenticator open({});
  EXPECT_TRUE(open.Authorize("/chainfleet.v1.WorkerService/Synchronize", {})->may(kWork));
  EXPECT_TRUE(open.Authorize("/chainfleet.v1.JobService/DrainWorker", {})->may(kOperate));
}

// An ending server returns UNAVAILABLE, so that clients of every kind repeat the call at the next server.
TEST(Authenticator, RefusesAllButHealthChecksAtTheEnd) {
  Authenticator open({}), guarded(TokenTable{{"token", {"vision"}}});
  for (Authenticator* auth : {&open, &guarded}) {
    auth->RefuseAll();
    EXPECT_TRUE(absl::IsUnavailable(auth->Authorize("/chainfleet.v1.JobService/GetJob", {}).status()));
    EXPECT_TRUE(auth->Authorize("/grpc.health.v1.Health/Check", {}).ok());
  }
}

}  // namespace
}  // namespace chainfleet
