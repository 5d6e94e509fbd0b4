// Tokens that an admin makes and revokes while the server runs.
#include <string>

#include "chainfleet/v1/access.grpc.pb.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AccessServiceTest : public RunningServer {
 protected:
  explicit AccessServiceTest(GivenTokens tokens = {{"admin", "default", Role::kAdmin}, {"user", "vision"}})
      : RunningServer(std::move(tokens)) {
    token_ = "admin";
  }

  static v1::CreateTokenRequest RequestFor(const std::string& token, v1::Role role, const std::string& tenant = "") {
    v1::CreateTokenRequest request;
    request.set_sha256(Sha256Hex(token));
    request.set_role(role);
    request.set_tenant(tenant);
    return request;
  }
  absl::StatusOr<v1::Token> Create(const v1::CreateTokenRequest& request) {
    return Call(*access_, &v1::AccessService::Stub::CreateToken, request);
  }
  absl::StatusOr<v1::ListTokensResponse> List(int32_t size = 0, const std::string& page = "") {
    v1::ListTokensRequest request;
    request.set_page_size(size);
    request.set_page_token(page);
    return Call(*access_, &v1::AccessService::Stub::ListTokens, request);
  }
  absl::Status Revoke(const std::string& id) {
    v1::RevokeTokenRequest request;
    request.set_id(id);
    return Call(*access_, &v1::AccessService::Stub::RevokeToken, request).status();
  }
  absl::Status ListJobsWith(const std::string& token) {
    token_ = token;
    const absl::Status status = Call(*jobs_, &v1::JobService::Stub::ListJobs, v1::ListJobsRequest()).status();
    token_ = "admin";
    return status;
  }

  const std::unique_ptr<v1::AccessService::Stub> access_ = v1::AccessService::NewStub(channel_);
};

TEST_F(AccessServiceTest, ATokenWorksFromItsCreationUntilItsRevocation) {
  EXPECT_TRUE(absl::IsUnauthenticated(ListJobsWith("made")));
  v1::CreateTokenRequest request = RequestFor("made", v1::READER, "vision");
  request.set_note("a notebook");
  const auto made = Create(request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->id(), Sha256Hex("made").substr(0, 12));
  EXPECT_EQ(made->tenant(), "vision");
  EXPECT_EQ(made->note(), "a notebook");
  EXPECT_EQ(made->created_by(), Sha256Hex("admin").substr(0, 12));
  EXPECT_EQ(made->expires_at().seconds() / 86400 - made->created_at().seconds() / 86400, 90);
  EXPECT_TRUE(ListJobsWith("made").ok());
  ASSERT_TRUE(Revoke(made->id()).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(ListJobsWith("made")));
  EXPECT_EQ(ReasonOf(Revoke(made->id())), "TOKEN_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Revoke("")), "TOKEN_NOT_FOUND");
}

TEST_F(AccessServiceTest, ARoleGivesItsRightsAndNoMore) {
  ASSERT_TRUE(Create(RequestFor("applies", v1::PREDICTOR)).ok());
  ASSERT_TRUE(Create(RequestFor("works", v1::WORKER)).ok());
  for (const char* token : {"applies", "works"}) EXPECT_EQ(ReasonOf(ListJobsWith(token)), "NOT_ALLOWED") << token;
}

TEST_F(AccessServiceTest, OnlyAdminsMakeListAndRevoke) {
  ASSERT_TRUE(Create(RequestFor("operates", v1::OPERATOR)).ok());
  for (const char* token : {"user", "operates"}) {
    token_ = token;
    EXPECT_EQ(ReasonOf(Create(RequestFor("mine", v1::READER)).status()), "NOT_ALLOWED") << token;
    EXPECT_EQ(ReasonOf(List().status()), "NOT_ALLOWED") << token;
    EXPECT_EQ(ReasonOf(Revoke(Sha256Hex("operates").substr(0, 12))), "NOT_ALLOWED") << token;
  }
}

TEST_F(AccessServiceTest, ARepeatedCallReturnsTheSameTokenAndAnotherIsRefused) {
  const auto first = Create(RequestFor("made", v1::READER));
  const auto again = Create(RequestFor("made", v1::READER));
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->SerializeAsString(), again->SerializeAsString());
  EXPECT_EQ(ReasonOf(Create(RequestFor("made", v1::ADMIN)).status()), "TOKEN_EXISTS");
  EXPECT_THAT(List()->tokens(), testing::SizeIs(1));
}

TEST_F(AccessServiceTest, ListsByPages) {
  for (const char* token : {"a", "b", "c"}) ASSERT_TRUE(Create(RequestFor(token, v1::READER)).ok());
  std::vector<std::string> ids;
  for (std::string page;;) {
    const auto list = List(2, page);
    ASSERT_TRUE(list.ok()) << list.status();
    for (const v1::Token& token : list->tokens()) ids.push_back(token.id());
    if ((page = list->next_page_token()).empty()) break;
  }
  EXPECT_THAT(ids, testing::SizeIs(3));
  EXPECT_TRUE(std::ranges::is_sorted(ids));
}

TEST_F(AccessServiceTest, RefusesWrongFieldsByName) {
  const auto field_of = [&](const v1::CreateTokenRequest& request) {
    const absl::Status status = Create(request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::vector<FieldViolation> wrong = FieldViolationsOf(status);
    return wrong.empty() ? "" : wrong[0].path;
  };
  v1::CreateTokenRequest request = RequestFor("made", v1::READER);
  request.set_sha256("made");
  EXPECT_EQ(field_of(request), "sha256") << "the token itself, which the server must not get";
  EXPECT_EQ(field_of(RequestFor("made", v1::ROLE_UNSPECIFIED)), "role");
  EXPECT_EQ(field_of(RequestFor("made", static_cast<v1::Role>(77))), "role");
  EXPECT_EQ(field_of(RequestFor("made", v1::READER, "Vision!")), "tenant");
  EXPECT_EQ(field_of(RequestFor("made", v1::WORKER, "Vision!")), "tenant");
  EXPECT_EQ(field_of(RequestFor("made", v1::READER, "*")), "tenant");
  request = RequestFor("made", v1::READER);
  request.set_max_uses(1);
  EXPECT_EQ(field_of(request), "max_uses");
  request = RequestFor("made", v1::READER);
  request.set_lifetime_seconds(-1);
  EXPECT_EQ(field_of(request), "lifetime_seconds");
  request.set_lifetime_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(field_of(request), "lifetime_seconds");
  request = RequestFor("made", v1::READER);
  request.set_note("two\nlines");
  EXPECT_EQ(field_of(request), "note");
  request.set_note(std::string(201, 'x'));
  EXPECT_EQ(field_of(request), "note");
  request = RequestFor("made", v1::READER);
  request.set_puts_models(true);
  EXPECT_EQ(field_of(request), "puts_models");
  EXPECT_THAT(List()->tokens(), IsEmpty());
}

class OpenAccessTest : public AccessServiceTest {
 protected:
  OpenAccessTest() : AccessServiceTest({}) { token_.clear(); }
};

// A token would not keep anybody out, and would tell its maker otherwise.
TEST_F(OpenAccessTest, AServerWithoutTokensMakesNone) {
  EXPECT_EQ(ReasonOf(Create(RequestFor("made", v1::ADMIN)).status()), "TOKENS_OFF");
}

}  // namespace
}  // namespace chainfleet
