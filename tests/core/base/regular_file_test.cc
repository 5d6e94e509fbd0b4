#include "core/base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace chainfleet {
namespace {

namespace fs = std::filesystem;

class RegularFileTest : public testing::Test {
 protected:
  RegularFileTest() : folder_(fs::canonical(testing::TempDir()) / ("regular-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "file") << "content";
  }
  ~RegularFileTest() override { fs::remove_all(folder_); }

  static absl::StatusOr<std::string> Content(const RegularFile& file) {
    std::string content;
    const auto take = [&](std::string_view part) {
      content += part;
      return absl::OkStatus();
    };
    CHAINFLEET_RETURN_IF_ERROR(file.Read(/*part_bytes=*/3, take));
    return content;
  }
  absl::StatusCode Code(const fs::path& path) { return RegularFile::Open(path.string()).status().code(); }

  const fs::path folder_;
};

TEST_F(RegularFileTest, IsReadWhole) {
  const auto file = RegularFile::Open((folder_ / "file").string());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size_bytes(), 7);
  EXPECT_EQ(Content(**file).value(), "content");
}

TEST_F(RegularFileTest, StaysTheFileThatWasOpenedWhenAnotherTakesItsName) {
  const auto file = RegularFile::Open((folder_ / "file").string());
  ASSERT_TRUE(file.ok()) << file.status();
  std::ofstream(folder_ / "new") << "other";
  fs::rename(folder_ / "new", folder_ / "file");
  EXPECT_EQ(Content(**file).value(), "content");
}

TEST_F(RegularFileTest, ReportsThatTheFileBecameShorter) {
  const auto file = RegularFile::Open((folder_ / "file").string());
  ASSERT_TRUE(file.ok()) << file.status();
  fs::resize_file(folder_ / "file", 3);
  EXPECT_EQ(Content(**file).status().code(), absl::StatusCode::kAborted);
}

TEST_F(RegularFileTest, FollowsNoLink) {
  fs::create_symlink(folder_ / "file", folder_ / "link");
  EXPECT_EQ(Code(folder_ / "link"), absl::StatusCode::kInvalidArgument);
  fs::create_directory_symlink(folder_, folder_ / "elsewhere");
  EXPECT_EQ(Code(folder_ / "elsewhere" / "file"), absl::StatusCode::kNotFound);
}

TEST_F(RegularFileTest, IsNoFolderDeviceOrPipe) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const fs::path& path : {folder_, folder_ / "pipe", fs::path("/dev/null"), fs::path("/")}) {
    EXPECT_EQ(Code(path), absl::StatusCode::kInvalidArgument) << path;
  }
}

TEST_F(RegularFileTest, AMissingFileIsNotFound) {
  EXPECT_EQ(Code(folder_ / "missing"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Code(folder_ / "missing" / "file"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Code(folder_ / "file" / "file"), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace chainfleet
