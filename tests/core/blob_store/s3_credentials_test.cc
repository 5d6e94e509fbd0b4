#include "core/store/blob_store/s3_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/fake_clock.h"
#include "tests/support/scripted_http.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class S3CredentialsTest : public ::testing::Test {
 protected:
  S3CredentialsTest() { std::filesystem::create_directories(folder_); }
  ~S3CredentialsTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<CredentialReader> Find() const {
    const auto variable = [this](const std::string& name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? "" : found->second;
    };
    return FindCredentials(variable, *RealFileSystem());
  }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
  static HttpReply Ok(const std::string& body) { return {200, {}, body}; }
  std::string In(absl::Duration from_now) const {
    return absl::FormatTime(absl::RFC3339_sec, clock_.Wall() + from_now, absl::UTCTimeZone());
  }
  std::string Json(const std::string& id, absl::Duration lasts) const {
    return absl::StrCat(R"({"AccessKeyId": ")", id,
                        R"(", "SecretAccessKey": "secret", "Token": "token", "Expiration": ")", In(lasts), R"("})");
  }

  const std::string folder_ = ::testing::TempDir() + "s3-credentials-" + std::to_string(::getpid());
  std::map<std::string, std::string> environment_ = {{"HOME", folder_}};
  FakeClock clock_;
  ScriptedHttp http_;
};

TEST_F(S3CredentialsTest, AWebIdentityAssumesItsRoleWithTheTokenThatTheFileHasThen) {
  environment_ = {{"AWS_WEB_IDENTITY_TOKEN_FILE", folder_ + "/token"},
                  {"AWS_ROLE_ARN", "arn:aws:iam::1:role/fleet"},
                  {"AWS_REGION", "eu-west-1"}};
  CredentialCache cache(Find().value(), &http_, &clock_);
  for (const char* token : {"first", "second"}) {
    Write("token", absl::StrCat(token, "\n"));
    http_.script.push_back(Ok(absl::StrCat(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>", token,
        "-id</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken><Expiration>",
        In(absl::Hours(1)), "</Expiration></Credentials></AssumeRoleWithWebIdentityResult>",
        "</AssumeRoleWithWebIdentityResponse>")));
    const auto credentials = cache.Current();
    ASSERT_TRUE(credentials.ok()) << credentials.status();
    EXPECT_EQ(credentials->access_key_id, absl::StrCat(token, "-id"));
    EXPECT_EQ(credentials->session_token, "session");
    EXPECT_EQ(http_.asked.back().line, "POST https://sts.eu-west-1.amazonaws.com/");
    EXPECT_THAT(http_.asked.back().body, AllOf(HasSubstr(absl::StrCat("WebIdentityToken=", token)),
                                               HasSubstr("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Ffleet")));
    clock_.Advance(absl::Minutes(56));
  }
}

TEST_F(S3CredentialsTest, AnInstanceIsAskedOnlyIfTheEnvironmentSaysSo) {
  EXPECT_EQ(ReasonOf(Find().status()), "NO_CREDENTIALS");
  environment_ = {{"AWS_EC2_METADATA_DISABLED", "false"}};
  CredentialCache cache(Find().value(), &http_, &clock_);
  http_.script = {Ok("session"), Ok("fleet-role\n"), Ok(Json("id", absl::Hours(6)))};
  EXPECT_EQ(cache.Current()->access_key_id, "id");
  ASSERT_EQ(http_.asked.size(), 3u);
  EXPECT_EQ(http_.asked[0].line, "PUT http://169.254.169.254/latest/api/token");
  EXPECT_EQ(http_.asked[2].line, "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/fleet-role");
  EXPECT_EQ(http_.asked[2].headers.at("x-aws-ec2-metadata-token"), "session");
}

TEST_F(S3CredentialsTest, AContainerIsAskedWithItsToken) {
  Write("authorization", "secret of the pod\n");
  environment_ = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"},
                  {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder_ + "/authorization"}};
  CredentialCache cache(Find().value(), &http_, &clock_);
  http_.script = {Ok(Json("id", absl::Hours(1)))};
  EXPECT_EQ(cache.Current()->session_token, "token");
  EXPECT_EQ(http_.asked[0].headers.at("authorization"), "secret of the pod");
}

TEST_F(S3CredentialsTest, AProfileIsReadAgainAndMayNameAProcess) {
  Write("credentials", "[default]\naws_access_key_id = one\naws_secret_access_key = s1\n");
  environment_["AWS_SHARED_CREDENTIALS_FILE"] = folder_ + "/credentials";
  CredentialCache cache(Find().value(), &http_, &clock_);
  EXPECT_EQ(cache.Current()->access_key_id, "one");
  Write("credentials", "[default]\naws_access_key_id = two\naws_secret_access_key = s2\n");
  EXPECT_EQ(cache.Current()->access_key_id, "one");
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(cache.Current()->access_key_id, "two");
  Write("process.json", Json("three", absl::Hours(1)));
  Write("credentials", absl::StrCat("[default]\ncredential_process = cat '", folder_, "/process.json'\n"));
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(cache.Current()->access_key_id, "three");
}

TEST_F(S3CredentialsTest, AFailureLeavesTheOldOnesUntilTheyExpireAndTellsNoSecret) {
  environment_ = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/credentials"}};
  CredentialCache cache(Find().value(), &http_, &clock_);
  http_.script = {Ok(Json("id", absl::Minutes(30)))};
  ASSERT_TRUE(cache.Current().ok());
  clock_.Advance(absl::Minutes(26));
  http_.script = {HttpReply{500, {}, "AccessKeyId of somebody"}};
  EXPECT_EQ(cache.Current()->access_key_id, "id");
  EXPECT_EQ(cache.Current()->access_key_id, "id");
  EXPECT_EQ(http_.asked.size(), 2u) << "not asked again at once";
  clock_.Advance(absl::Minutes(4));
  http_.script = {Ok("{}")};
  const absl::Status expired = cache.Current().status();
  EXPECT_EQ(ReasonOf(expired), "STORE_REFUSED");
  EXPECT_THAT(expired.ToString(), Not(HasSubstr("secret")));
}

TEST_F(S3CredentialsTest, HalfAWebIdentityIsRefused) {
  environment_["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/fleet";
  EXPECT_TRUE(absl::IsInvalidArgument(Find().status()));
}

}  // namespace
}  // namespace chainfleet
