#include "core/store/blob_store/s3_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/store/blob_store/file_blob_store.h"
#include "core/store/blob_store/object_place.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

S3Credentials Keys(const S3Settings& settings) { return settings.credentials(nullptr, SystemClock())->credentials; }

class S3SettingsTest : public ::testing::Test {
 protected:
  S3SettingsTest() { std::filesystem::create_directories(folder_); }
  ~S3SettingsTest() override { std::filesystem::remove_all(folder_); }
  absl::StatusOr<S3Settings> Read(const std::string& url) const {
    return ReadS3Settings(
        url,
        [this](const std::string& name) {
          const auto it = environment_.find(name);
          return it == environment_.end() ? "" : it->second;
        },
        *RealFileSystem());
  }
  const std::string folder_ = ::testing::TempDir() + "s3-settings-" + std::to_string(::getpid());
  std::map<std::string, std::string> environment_ = {{"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "secret"}};
};

TEST_F(S3SettingsTest, ReadsAddressAndEnvironment) {
  environment_["AWS_ENDPOINT_URL"] = "http://store:8333/";
  environment_["AWS_SESSION_TOKEN"] = "token";
  environment_["AWS_DEFAULT_REGION"] = "eu-west-1";
  const S3Settings settings = Read("s3://bucket/some/folder/").value();
  EXPECT_EQ(settings.bucket, "bucket");
  EXPECT_EQ(settings.prefix, "some/folder/");
  EXPECT_EQ(settings.endpoint, "http://store:8333");
  EXPECT_EQ(settings.region, "eu-west-1");
  EXPECT_EQ(Keys(settings).access_key_id, "id");
  EXPECT_EQ(Keys(settings).session_token, "token");
  EXPECT_EQ(settings.Url(), "s3://bucket/some/folder/");
  EXPECT_EQ(Read("s3://bucket")->prefix, "");
  EXPECT_EQ(Read("s3://bucket/")->prefix, "");
  environment_["AWS_REGION"] = "eu-north-1";
  environment_["AWS_ENDPOINT_URL_S3"] = "https://other";
  EXPECT_EQ(Read("s3://bucket")->region, "eu-north-1");
  EXPECT_EQ(Read("s3://bucket")->endpoint, "https://other");
}

TEST_F(S3SettingsTest, RefusesMalformedAddresses) {
  for (const char* url : {"", "bucket", "http://bucket", "s3://", "s3://ab", "s3://UPPER", "s3://bucket//a",
                          "s3://bucket/../a", "s3://bucket/a b", "s3://bucket/.hidden"}) {
    EXPECT_EQ(Read(url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
  for (const char* endpoint : {"store:8333", "ftp://store", "http://", "http://user@store", "http://store/path"}) {
    environment_["AWS_ENDPOINT_URL"] = endpoint;
    const absl::Status status = Read("s3://bucket").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << endpoint;
    EXPECT_THAT(std::string(status.message()), HasSubstr("AWS_ENDPOINT_URL"));
  }
}

TEST_F(S3SettingsTest, TakesTheProfileOfTheCredentialsFileWhereTheEnvironmentHasNone) {
  environment_ = {{"AWS_SHARED_CREDENTIALS_FILE", folder_ + "/credentials"}, {"HOME", folder_}};
  const absl::Status missing = Read("s3://bucket").status();
  EXPECT_EQ(ReasonOf(missing), "NO_CREDENTIALS");
  EXPECT_THAT(std::string(missing.message()), HasSubstr(folder_ + "/credentials"));
  std::ofstream(folder_ + "/credentials") << "[default]\naws_access_key_id = one\naws_secret_access_key=s1\n\n"
                                             "# comment\n[fleet]\r\naws_access_key_id=two\r\n"
                                             "aws_secret_access_key = s2=/+\naws_session_token=t2\n";
  EXPECT_EQ(Keys(*Read("s3://bucket")).access_key_id, "one");
  environment_["AWS_PROFILE"] = "fleet";
  const S3Credentials fleet = Keys(*Read("s3://bucket"));
  EXPECT_EQ(fleet.access_key_id, "two");
  EXPECT_EQ(fleet.secret_access_key, "s2=/+");
  EXPECT_EQ(fleet.session_token, "t2");
  environment_["AWS_PROFILE"] = "absent";
  const absl::Status absent = Read("s3://bucket").status();
  EXPECT_EQ(ReasonOf(absent), "NO_CREDENTIALS");
  EXPECT_THAT(std::string(absent.message()), Not(HasSubstr("s1")));
}

TEST_F(S3SettingsTest, ADataDirectoryKeepsToTheStoreThatHasItsObjects) {
  const ObjectPlace place(RealFileSystem(), folder_);
  EXPECT_TRUE(place.Check("").ok());
  EXPECT_TRUE(place.Check("s3://one/").ok());
  ASSERT_TRUE(place.Keep("s3://one/").ok());
  EXPECT_TRUE(place.Check("s3://one/").ok());
  for (const char* url : {"", "s3://two/"}) {
    const absl::Status other = place.Check(url);
    EXPECT_EQ(ReasonOf(other), "OTHER_STORE");
    EXPECT_THAT(std::string(other.message()), HasSubstr("start the server with --blobs s3://one/"));
  }
}

TEST_F(S3SettingsTest, AFolderKeepsItsIdUnderAnyPath) {
  const ObjectPlace place(RealFileSystem(), folder_);
  EXPECT_EQ(*place.FolderId("first"), "first");
  EXPECT_EQ(*place.FolderId("second"), "first");
  std::filesystem::create_directories(folder_ + "/moved");
  std::filesystem::rename(place.folder(), folder_ + "/moved/blobs");
  EXPECT_EQ(*ObjectPlace(RealFileSystem(), folder_ + "/moved").FolderId("third"), "first");
  EXPECT_TRUE(ObjectPlace(RealFileSystem(), folder_ + "/moved").Check("s3://one/").ok()) << "the id is no object";
  EXPECT_TRUE((*FileBlobStore::Open(RealFileSystem(), folder_ + "/moved/blobs"))->List("")->empty());
  std::ofstream(folder_ + "/moved/blobs/.id") << "\n";
  EXPECT_TRUE(absl::IsDataLoss(ObjectPlace(RealFileSystem(), folder_ + "/moved").FolderId("fourth").status()));
}

TEST_F(S3SettingsTest, ObjectsInTheFolderKeepAServerFromS3) {
  const ObjectPlace place(RealFileSystem(), folder_);
  std::filesystem::create_directories(place.folder());
  EXPECT_TRUE(place.Check("s3://one/").ok()) << "there are no objects yet";
  std::ofstream(place.folder() + "/object") << "x";
  EXPECT_EQ(ReasonOf(place.Check("s3://one/")), "OTHER_STORE");
  EXPECT_TRUE(place.Check("").ok());
}

}  // namespace
}  // namespace chainfleet
