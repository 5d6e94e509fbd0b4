#include "core/base/byte_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "core/base/file_system.h"

namespace chainfleet {
namespace {

class ByteSourceTest : public ::testing::Test {
 protected:
  ByteSourceTest() { EXPECT_TRUE(RealFileSystem()->WriteSynced(path_, bytes_).ok()); }
  ~ByteSourceTest() override { std::filesystem::remove(path_); }
  const std::string path_ = ::testing::TempDir() + "byte-source-" + std::to_string(::getpid());
  const std::string bytes_ = "0123456789";
};

TEST_F(ByteSourceTest, ReadsMemoryAndFilesAlike) {
  for (const ByteSource& source : {ByteSource(bytes_), ByteSource::InFile(path_, 10)}) {
    std::string buffer;
    EXPECT_EQ(source.size_bytes(), 10);
    EXPECT_EQ(source.Range(2, 3, &buffer).value(), "234");
    EXPECT_EQ(source.Range(8, 100, &buffer).value(), "89");
    EXPECT_EQ(source.Range(10, 1, &buffer).value(), "");
    EXPECT_EQ(source.Range(11, 1, &buffer).value(), "");
    EXPECT_EQ(source.ReadAll().value(), bytes_);
    std::vector<std::string> parts;
    const auto take = [&](std::string_view part) {
      parts.emplace_back(part);
      return parts.size() == 3 ? absl::OutOfRangeError("enough") : absl::OkStatus();
    };
    EXPECT_TRUE(absl::IsOutOfRange(source.ForEachPart(4, take)));
    EXPECT_THAT(parts, ::testing::ElementsAre("0123", "4567", "89"));
  }
}

TEST_F(ByteSourceTest, ReportsAFileThatIsShorterOrGone) {
  EXPECT_TRUE(absl::IsDataLoss(ByteSource::InFile(path_, 11).ReadAll().status()));
  EXPECT_TRUE(absl::IsNotFound(ByteSource::InFile(path_ + ".none", 1).ReadAll().status()));
}

}  // namespace
}  // namespace chainfleet
