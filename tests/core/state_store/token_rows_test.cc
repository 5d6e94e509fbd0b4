// The contract of every StateStore for tokens.
#include "core/base/limits.h"
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class TokenRows : public StateStoreTest {
 protected:
  static AccessToken Token(const std::string& sha256, const std::string& tenant = "vision") {
    return {.sha256 = sha256,
            .tenant = tenant,
            .role = Role::kAdmin,
            .puts_models = true,
            .note = "for \xc3\xa9l\xc3\xa8ves 'and' others",
            .created_by = "4f1a9c02d7e8",
            .expires_at = absl::FromUnixSeconds(2'000'000'000) + absl::Nanoseconds(7)};
  }
  std::vector<AccessToken> Tokens() { return store_->Load().value().tokens; }
  // Their digests begin at DigestOf(100).
  void AddMany(int count, const std::string& tenant) {
    std::vector<StateChange> changes;
    for (int i = 0; i < count; ++i) changes.push_back(change::AddToken{Token(DigestOf(100 + i), tenant)});
    const auto added = store_->Apply(changes, wall_);
    ASSERT_TRUE(added.ok() && added->back().status.ok());
  }
};

TEST_P(TokenRows, AreKeptAndLoadedInOrder) {
  const AccessToken second = Token(DigestOf(2)), first = Token(DigestOf(1));
  for (const AccessToken& token : {second, first}) {
    const ApplyResult added = Apply(change::AddToken{token});
    ASSERT_TRUE(added.status.ok()) << added.status;
    EXPECT_EQ(added.token->created_at, wall_);
  }
  store_ = harness_->Open();
  const std::vector<AccessToken> tokens = Tokens();
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_LT(tokens[0].sha256, tokens[1].sha256);
  AccessToken wanted = first.sha256 < second.sha256 ? first : second;
  wanted.created_at = tokens[0].created_at;
  EXPECT_EQ(tokens[0], wanted);
}

TEST_P(TokenRows, ARepeatedAddReturnsTheFirstAndAnotherTokenOfThatDigestIsRefused) {
  const AccessToken token = Token(DigestOf(1));
  const ApplyResult first = Apply(change::AddToken{token});
  AccessToken later = token;
  later.expires_at += absl::Hours(1);
  const ApplyResult again = Apply(change::AddToken{later});
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.token, first.token);
  later.role = Role::kReader;
  EXPECT_EQ(ReasonOf(Apply(change::AddToken{later}).status), "TOKEN_EXISTS");
  EXPECT_THAT(Tokens(), ElementsAre(*first.token));
}

TEST_P(TokenRows, ARevokedTokenIsGone) {
  ASSERT_TRUE(Apply(change::AddToken{Token(DigestOf(1))}).status.ok());
  ASSERT_TRUE(Apply(change::RevokeToken{DigestOf(1)}).status.ok());
  EXPECT_THAT(Tokens(), IsEmpty());
  EXPECT_EQ(ReasonOf(Apply(change::RevokeToken{DigestOf(1)}).status), "TOKEN_NOT_FOUND");
}

TEST_P(TokenRows, AreUsedAsOftenAsTheySay) {
  AccessToken token = Token(DigestOf(1));
  token.max_uses = 2;
  ASSERT_TRUE(Apply(change::AddToken{token}).status.ok());
  for (const int64_t uses : {1, 2}) EXPECT_EQ(Apply(change::UseToken{DigestOf(1)}).token->uses, uses);
  const absl::Status refused = Apply(change::UseToken{DigestOf(1)}).status;
  EXPECT_EQ(ReasonOf(refused), "TOKEN_USED_UP");
  EXPECT_EQ(BoundOf(refused), "token_uses");
  EXPECT_EQ(Tokens()[0].uses, 2);
  EXPECT_TRUE(Apply(change::AddToken{token}).replayed) << "its uses do not make it another token";
  EXPECT_EQ(ReasonOf(Apply(change::UseToken{DigestOf(2)}).status), "TOKEN_NOT_FOUND");
}

TEST_P(TokenRows, AreBounded) {
  AddMany(limits::kMaxTokens, "default");
  for (const char* tenant : {"default", "*", "vision"}) {
    const absl::Status refused = Apply(change::AddToken{Token(DigestOf(1), tenant)}).status;
    EXPECT_EQ(ReasonOf(refused), "TOO_MANY_TOKENS") << tenant;
    EXPECT_EQ(BoundOf(refused), "tokens");
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("2000"))) << "tenants do not learn it";
  }
}

TEST_P(TokenRows, ATenantHasAQuarterAtMost) {
  AddMany(limits::kMaxTenantTokens, "vision");
  const absl::Status refused = Apply(change::AddToken{Token(DigestOf(1))}).status;
  EXPECT_EQ(ReasonOf(refused), "TOO_MANY_TOKENS");
  EXPECT_EQ(BoundOf(refused), "tenant_tokens");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("vision has 500 tokens"));
  EXPECT_TRUE(Apply(change::AddToken{Token(DigestOf(100))}).replayed) << "a repeated call needs no room";
  EXPECT_TRUE(Apply(change::AddToken{Token(DigestOf(2), "speech")}).status.ok());
  EXPECT_TRUE(Apply(change::AddToken{Token(DigestOf(3), "*")}).status.ok());
  ASSERT_TRUE(Apply(change::RevokeToken{DigestOf(100)}).status.ok());
  EXPECT_TRUE(Apply(change::AddToken{Token(DigestOf(1))}).status.ok());
}

INSTANTIATE_TEST_SUITE_P(AllStores, TokenRows, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet
