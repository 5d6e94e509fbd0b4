#include "client/cli/input_array.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/npy.h"
#include "core/formats/zarr.h"
#include "core/formats/zip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Members = std::vector<std::pair<std::string, std::string>>;

class InputArrayTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  std::string Error(const std::string& path) {
    const absl::Status status = ReadInputArray(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  const std::string folder_ = ::testing::TempDir() + "input_array_test-" + std::to_string(::getpid());
};

// A group whose array x is [3, 2]: "abcdef".
Members Group() {
  Members members;
  EXPECT_TRUE(WriteZarr({{"x", {ArrayType::kUint8, {3, 2}, "abcdef"}}}, 4,
                        [&](const std::string& key, const std::string& content) {
                          members.emplace_back(key, content);
                          return absl::OkStatus();
                        })
                  .ok());
  return members;
}

TEST_F(InputArrayTest, ReadsXOfAZarrGroupOrAnArrayAtTheRoot) {
  Members below;
  for (const auto& [key, content] : Group()) {
    Write("mine.zarr/" + key, content);
    below.emplace_back("mine.zarr/" + key, content);
  }
  Write("mine.zarr.zip", *WriteZip(Group()));
  Write("below.zarr.zip", *WriteZip(below));
  for (const char* path : {"mine.zarr", "mine.zarr/", "mine.zarr/x", "mine.zarr.zip", "below.zarr.zip"}) {
    const auto array = ReadInputArray(folder_ + "/" + path);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_THAT(array->shape, ElementsAre(3, 2));
    EXPECT_EQ(array->bytes, "abcdef");
  }
}

TEST_F(InputArrayTest, NamesThePathOfWhatIsNoInput) {
  const std::string none = Write("none.zip", *WriteZip({{"a.txt", "a"}}));
  EXPECT_THAT(Error(none), AllOf(HasSubstr(none), HasSubstr("neither a Zarr array nor a Zarr group with an array x")));
  EXPECT_THAT(Error(folder_), AllOf(HasSubstr(folder_), HasSubstr("neither a Zarr array")));
  const std::string text = Write("text", "x");
  EXPECT_THAT(Error(text), HasSubstr(text + ": not a .npy file"));
  const std::string whole = Write("i.npy", WriteNpy({ArrayType::kInt64, {1, 1}, std::string(8, '\0')}));
  EXPECT_THAT(Error(whole), HasSubstr(whole + " holds int64 (<i8)"));
  const std::string flat = Write("f.npy", WriteNpy({ArrayType::kUint8, {2}, "ab"}));
  EXPECT_THAT(Error(flat), HasSubstr(flat + " has shape [2]"));
}

TEST_F(InputArrayTest, ReadsCsvAndFloat64AsFloat32) {
  const double wide[] = {0.5, -2, 1e-3, 7};
  const std::string doubles(reinterpret_cast<const char*>(wide), sizeof wide);
  for (const std::string& path :
       {Write("d.npy", WriteNpy({ArrayType::kFloat64, {2, 2}, doubles})), Write("d.csv", "a,b\n0.5,-2\n1e-3,7\n")}) {
    const auto array = ReadInputArray(path);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->type, ArrayType::kFloat32);
    EXPECT_THAT(array->shape, ElementsAre(2, 2));
    ASSERT_EQ(array->bytes.size(), 16u);
    float values[4];
    std::memcpy(values, array->bytes.data(), sizeof values);
    EXPECT_THAT(values, ElementsAre(0.5f, -2.0f, 1e-3f, 7.0f));
  }
  EXPECT_THAT(Error(Write("large.csv", "1,1e300\n")), HasSubstr("1e+300, which is beyond float32"));
}

TEST_F(InputArrayTest, GivesIdxImagesAChannel) {
  const auto array = ReadInputArray(Write("i", std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02"
                                                           "abcd",
                                                           20)));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape, ElementsAre(2, 1, 1, 2));
}

}  // namespace
}  // namespace chainfleet
