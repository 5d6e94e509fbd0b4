#include "client/cli/zarr_folder.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/formats/zip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PackZarrTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& key, const std::string& content) {
    const std::filesystem::path path = folder_ + "/" + key;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }

  const std::string folder_ = ::testing::TempDir() + "zarr_folder_test-" + std::to_string(::getpid());
};

TEST_F(PackZarrTest, TakesXAndYAlone) {
  for (const char* key : {".zgroup", "x/.zarray", "x/0.0", "y/.zarray", "y/0", "z/.zarray", ".zmetadata"}) {
    Write(key, std::string("content of ") + key);
  }
  const auto bytes = PackZarr(folder_);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto archive = ZipReader::Open(*bytes, "Zarr");
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_THAT(archive->names(), ElementsAre(".zgroup", "x/.zarray", "x/0.0", "y/.zarray", "y/0"));
  EXPECT_EQ(*archive->Read("x/0.0", 100), "content of x/0.0");
}

TEST_F(PackZarrTest, NeedsNoZgroup) {
  Write("x/.zarray", "{}");
  Write("y/.zarray", "{}");
  EXPECT_TRUE(PackZarr(folder_).ok());
}

TEST_F(PackZarrTest, RefusesOtherFolders) {
  Write("x/.zarray", "{}");
  absl::Status error = PackZarr(folder_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error));
  EXPECT_THAT(std::string(error.message()), HasSubstr(folder_ + " is a folder without a Zarr group"));
  Write("zarr.json", "{}");
  error = PackZarr(folder_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error));
  EXPECT_THAT(std::string(error.message()), HasSubstr("zarr_format=2"));
}

}  // namespace
}  // namespace chainfleet
