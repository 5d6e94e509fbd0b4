#include "server/rpc/auth.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

TEST(ParseTokens, ATokenIsOfItsTenantOrOfTheDefaultOne) {
  EXPECT_THAT(ParseTokens("\n  one\ntwo vision \r\n\nthree\tvision\n").value(),
              ElementsAre(Pair("one", "default"), Pair("three", "vision"), Pair("two", "vision")));
  EXPECT_THAT(ParseTokens("").value(), IsEmpty());
  EXPECT_THAT(ParseTokens(" \n").value(), IsEmpty());
}

TEST(ParseTokens, SaysWhichLineIsWrongAndNoToken) {
  for (const char* text : {"good\nsecret vision extra", "good\nsecret Vision!", "good\ngood vision"}) {
    const absl::Status status = ParseTokens(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("line 2"), Not(HasSubstr("secret")), Not(HasSubstr("good"))));
  }
}

// An ending server answers as UNAVAILABLE, so that clients of every make repeat the call at the next server.
TEST(Authenticator, RefusesAllAsUnavailableAtTheEnd) {
  grpc::CallbackServerContext context;
  Authenticator open(TokenTable{}), guarded(TokenTable{{"token", "vision"}});
  EXPECT_TRUE(open.Check(context).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(guarded.Check(context)));
  for (Authenticator* auth : {&open, &guarded}) {
    auth->RefuseAll();
    EXPECT_TRUE(absl::IsUnavailable(auth->Check(context)));
  }
}

}  // namespace
}  // namespace chainfleet
