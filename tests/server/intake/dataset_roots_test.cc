#include "server/intake/dataset_roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/fake_clock.h"
#include "tests/support/scripted_http.h"

namespace chainfleet {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

absl::StatusOr<std::string> ReadAll(
    const DatasetRoots& roots, const std::string& uri, int64_t max_bytes,
    const DatasetRoots::Admit& admit = [](int64_t) { return absl::OkStatus(); }) {
  std::string bytes;
  const auto take = [&](std::string_view part) {
    bytes += part;
    return absl::OkStatus();
  };
  CHAINFLEET_RETURN_IF_ERROR(roots.Read(uri, max_bytes, admit, take));
  return bytes;
}

// A folder `data` that is a root, and a secret next to it.
class DatasetRootsTest : public testing::Test {
 protected:
  DatasetRootsTest() : home_(fs::canonical(testing::TempDir()) / ("roots-" + std::to_string(::getpid()))) {
    fs::remove_all(home_);
    fs::create_directories(home_ / "data" / "inner");
    fs::create_directories(home_ / "database");
    for (const char* name : {"data/x.npy", "data/inner/y.npy", "data/a b%.npy", "database/x.npy", "secret"})
      std::ofstream(home_ / name) << name;
    roots_.AddFolder((home_ / "data").string());
  }
  ~DatasetRootsTest() override { fs::remove_all(home_); }

  // Returns the URI of a path below the test's folder.
  std::string Uri(const std::string& path) const { return "file://" + home_.string() + "/" + path; }
  absl::StatusOr<std::string> Read(const std::string& path) const { return ReadAll(roots_, Uri(path), 100); }
  StatusCode CodeOf(const std::string& path) const { return Read(path).status().code(); }

  const fs::path home_;
  DatasetRoots roots_;
};

TEST_F(DatasetRootsTest, ReadAFileBelowARoot) {
  EXPECT_EQ(Read("data/x.npy").value(), "data/x.npy");
  EXPECT_EQ(Read("data/inner/y.npy").value(), "data/inner/y.npy");
  EXPECT_EQ(ReadAll(roots_, "file://localhost" + home_.string() + "/data/x.npy", 100).value(), "data/x.npy");
  EXPECT_EQ(Read("data/a%20b%25.npy").value(), "data/a b%.npy");
  EXPECT_EQ(Read("data/inner/../x.npy").value(), "data/x.npy");
}

TEST_F(DatasetRootsTest, ReadBelowAnyOfSeveralRootsHoweverTheyAreWritten) {
  fs::create_directory_symlink(home_ / "database", home_ / "link");
  roots_.AddFolder((home_ / "link").string() + "/");
  EXPECT_EQ(Read("data/x.npy").value(), "data/x.npy");
  EXPECT_EQ(Read("link/x.npy").value(), "database/x.npy");
  EXPECT_EQ(Read("database/x.npy").value(), "database/x.npy");
  EXPECT_EQ(CodeOf("secret"), StatusCode::kPermissionDenied);
}

TEST_F(DatasetRootsTest, RefuseOtherPathsWithoutRevealingTheirExistence) {
  const absl::Status there = Read("secret").status(), missing = Read("missing").status();
  EXPECT_EQ(there.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(missing.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(there.message()),
              AllOf(HasSubstr(Uri("secret")), HasSubstr("--dataset-root"), Not(HasSubstr((home_ / "data").string()))));
  EXPECT_EQ(CodeOf("data/x.npy/../../secret"), StatusCode::kPermissionDenied);
}

TEST_F(DatasetRootsTest, RefuseASiblingWithTheSamePrefix) {
  EXPECT_EQ(CodeOf("database/x.npy"), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf("data/../database/x.npy"), StatusCode::kPermissionDenied);
}

TEST_F(DatasetRootsTest, RefuseToClimbOutOfTheRoot) {
  for (const char* path : {"data/../secret", "data/inner/../../secret", "data/%2e%2e/secret", "data/%2E./secret",
                           "data/..%2fsecret", "data/missing/../../secret", "data//../secret", "data/./../secret"}) {
    EXPECT_EQ(CodeOf(path), StatusCode::kPermissionDenied) << path;
  }
}

TEST_F(DatasetRootsTest, RefuseALinkOutOfTheRoot) {
  fs::create_symlink(home_ / "secret", home_ / "data/link.npy");
  fs::create_directory_symlink(home_, home_ / "data/up");
  fs::create_symlink("../secret", home_ / "data/relative.npy");
  for (const char* path : {"data/link.npy", "data/up/secret", "data/relative.npy", "data/up/missing"})
    EXPECT_EQ(CodeOf(path), StatusCode::kPermissionDenied) << path;
}

TEST_F(DatasetRootsTest, MakeNoSystemCallForAPathOutsideTheRoots) {
  fs::create_directory_symlink(home_ / "data", home_ / "alias");  // it leads inside
  EXPECT_EQ(CodeOf("alias/x.npy"), StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf("alias/../data/x.npy"), StatusCode::kOk);
}

TEST_F(DatasetRootsTest, AskWhetherAFileOfThatSizeMayBeRead) {
  const auto none = [](int64_t size_bytes) { return absl::UnavailableError(absl::StrCat(size_bytes)); };
  EXPECT_THAT(std::string(ReadAll(roots_, Uri("data/x.npy"), 100, none).status().message()), HasSubstr(": 10"));
}

TEST_F(DatasetRootsTest, FollowALinkThatStaysInside) {
  fs::create_symlink(home_ / "data/x.npy", home_ / "data/inside.npy");
  fs::create_directory_symlink("inner", home_ / "data/newest");
  EXPECT_EQ(Read("data/inside.npy").value(), "data/x.npy");
  EXPECT_EQ(Read("data/newest/y.npy").value(), "data/inner/y.npy");
}

TEST_F(DatasetRootsTest, SayThatAFileIsMissing) {
  fs::create_symlink("nowhere", home_ / "data/dangling.npy");
  for (const char* path : {"data/missing.npy", "data/missing/x.npy", "data/x.npy/y.npy"}) {
    const absl::Status missing = Read(path).status();
    EXPECT_EQ(missing.code(), StatusCode::kNotFound) << path;
    EXPECT_THAT(std::string(missing.message()), AllOf(HasSubstr(Uri(path)), HasSubstr("check the path")));
  }
  EXPECT_FALSE(Read("data/dangling.npy").ok());
}

TEST_F(DatasetRootsTest, WantRegularFiles) {
  ASSERT_EQ(::mkfifo((home_ / "data/pipe").c_str(), 0600), 0);
  for (const char* path : {"data", "data/", "data/inner", "data/inner/.", "data/pipe"})
    EXPECT_EQ(CodeOf(path), StatusCode::kInvalidArgument) << path;
  DatasetRoots everything;
  everything.AddFolder("/");
  EXPECT_EQ(ReadAll(everything, "file:///dev/null", 100).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadAll(everything, Uri("secret"), 100).value(), "secret");
}

TEST_F(DatasetRootsTest, AskTheSizeBeforeTheyRead) {
  fs::resize_file(home_ / "data/x.npy", int64_t{1} << 40);
  const absl::Status large = Read("data/x.npy").status();
  EXPECT_EQ(large.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(large.message()), HasSubstr("1099511627776 bytes are more than the 100 that"));
  EXPECT_EQ(ReadAll(roots_, Uri("secret"), 0).status().code(), StatusCode::kPermissionDenied);
}

TEST_F(DatasetRootsTest, RefuseAFileThatTheServerMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  ::chmod((home_ / "data/x.npy").c_str(), 0);
  EXPECT_EQ(CodeOf("data/x.npy"), StatusCode::kPermissionDenied);
}

TEST_F(DatasetRootsTest, WithoutOneRefuseEveryUri) {
  for (const std::string& uri : {Uri("data/x.npy"), std::string("s3://bucket/key"), std::string("http://host/x")}) {
    const absl::Status refused = ReadAll(DatasetRoots(), uri, 100).status();
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(ReasonOf(refused), "NO_DATASET_ROOT");
    EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr(uri), HasSubstr("--dataset-root")));
  }
}

TEST_F(DatasetRootsTest, RefuseAMalformedUri) {
  for (const char* uri : {"http://host/x.npy",
                          "FILE:///x",
                          "file:/data/x",
                          "file://other.host/data/x",
                          "file://",
                          "file:///",
                          "file://localhost",
                          "file:///data/x%",
                          "file:///data/x%2",
                          "file:///data/x%zz",
                          "file:///data/x%+1",
                          "file:///data/x%00.npy",
                          "file:///data/x?y",
                          "file:///data/x#y",
                          "s3://",
                          "s3://bucket",
                          "s3://bucket/",
                          "s3:///key",
                          "s3://bucket/a/../b",
                          "s3://bucket/./b",
                          "s3://bucket/a/%2e%2e",
                          "s3://bucket/a/%2E%2e/b"}) {
    const absl::Status refused = ReadAll(roots_, uri, 100).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << uri << " " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(uri));
  }
  EXPECT_EQ(roots_.Check("file:///" + std::string(100'000, 'x')).code(), StatusCode::kInvalidArgument);
}

TEST_F(DatasetRootsTest, AreAbsoluteFolders) {
  EXPECT_TRUE(DatasetRoots::CheckFolder(home_.string()).ok());
  EXPECT_TRUE(DatasetRoots::CheckFolder("/").ok());
  EXPECT_EQ(DatasetRoots::CheckFolder("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DatasetRoots::CheckFolder("data").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DatasetRoots::CheckFolder("file:///data").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DatasetRoots::CheckFolder((home_ / "secret").string()).code(), StatusCode::kNotFound);
  EXPECT_EQ(DatasetRoots::CheckFolder((home_ / "missing").string()).code(), StatusCode::kNotFound);
}

// One root s3://bucket/a/b on a server with scripted answers.
class BucketRootTest : public testing::Test {
 protected:
  BucketRootTest() {
    const S3Settings settings{.bucket = "bucket",
                              .prefix = "a/b/",
                              .endpoint = "http://s3.lan",
                              .region = "us-east-1",
                              .ca_bundle = "",
                              .credentials = FixedCredentials({"key", "not-to-be-said", ""})};
    roots_.AddBucket(std::make_unique<S3Client>(settings, &http_, &clock_, RngKey{1}, [](absl::Duration) {}));
  }
  static HttpReply Head(int64_t size) { return {200, {{"content-length", absl::StrCat(size)}}, ""}; }
  std::vector<std::string> Asked() const {
    std::vector<std::string> lines;
    for (const auto& asked : http_.asked) lines.push_back(asked.line);
    return lines;
  }

  ScriptedHttp http_;
  FakeClock clock_;
  DatasetRoots roots_;
};

TEST_F(BucketRootTest, ReadsAnObjectBelowThePrefix) {
  http_.script = {Head(5), HttpReply{200, {}, "bytes"}};
  EXPECT_EQ(ReadAll(roots_, "s3://bucket/a/b/c%20d.npy", 100).value(), "bytes");
  EXPECT_THAT(Asked(),
              ElementsAre("HEAD http://s3.lan/bucket/a/b/c%20d.npy", "GET http://s3.lan/bucket/a/b/c%20d.npy"));
}

TEST_F(BucketRootTest, RefusesOtherPathsWithoutARequest) {
  for (const char* uri : {"s3://bucket/a/bc", "s3://bucket/a/b", "s3://bucket/a/bc/x.npy", "s3://bucket/x.npy",
                          "s3://other/a/b/x.npy", "s3://bucket//a/b/x.npy", "file:///a/b/x.npy"}) {
    EXPECT_EQ(ReadAll(roots_, uri, 100).status().code(), StatusCode::kPermissionDenied) << uri;
  }
  EXPECT_EQ(ReadAll(roots_, "s3://bucket/a/b/../c", 100).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Asked(), ElementsAre());
}

TEST_F(BucketRootTest, AsksTheSizeBeforeItReads) {
  http_.script = {Head(101)};
  EXPECT_EQ(ReadAll(roots_, "s3://bucket/a/b/x.npy", 100).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(http_.asked.size(), 1u);
}

TEST_F(BucketRootTest, RefusesAnObjectThatIsReplacedWhileItIsRead) {
  http_.script = {Head(5), HttpReply{206, {}, "more bytes"}};
  EXPECT_EQ(ReadAll(roots_, "s3://bucket/a/b/x.npy", 100).status().code(), StatusCode::kAborted);
  http_.script = {Head(5), HttpReply{206, {{"etag", "\"other\""}}, "bytes"}};
  EXPECT_EQ(ReadAll(roots_, "s3://bucket/a/b/x.npy", 100).status().code(), StatusCode::kAborted);
}

TEST_F(BucketRootTest, ReadsALargeObjectInParts) {
  const std::string part(8 << 20, 'x');
  http_.script = {Head(std::ssize(part) + 2), HttpReply{206, {}, part}, HttpReply{206, {}, "yz"}};
  EXPECT_EQ(ReadAll(roots_, "s3://bucket/a/b/x.npy", 9 << 20).value(), part + "yz");
  EXPECT_EQ(http_.asked[2].headers["range"], "bytes=8388608-8388609");
}

TEST_F(BucketRootTest, NamesMissingAndRefusedObjects) {
  http_.script = {HttpReply{404, {}, ""}};
  const absl::Status missing = ReadAll(roots_, "s3://bucket/a/b/x.npy", 100).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("s3://bucket/a/b/x.npy"));
  http_.script = {HttpReply{403, {}, ""}};
  const absl::Status refused = ReadAll(roots_, "s3://bucket/a/b/x.npy", 100).status();
  EXPECT_EQ(ReasonOf(refused), "STORE_REFUSED");
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("not-to-be-said")));
  http_.script.clear();
  EXPECT_EQ(ReadAll(roots_, "s3://bucket/a/b/x.npy", 100).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace chainfleet
