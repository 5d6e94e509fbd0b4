// Tests the writers of IDX, CIFAR-10 and CSV: reading back their files, and refused inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/formats/cifar.h"
#include "core/formats/csv.h"
#include "core/formats/idx.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string ErrorOf(const absl::StatusOr<T>& result) {
  EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
  return std::string(result.status().message());
}

TEST(WriteIdx, HasTheBytesOfTheFormat) {
  const auto bytes = WriteIdx({.type = ArrayType::kUint8, .shape = {2, 3}, .bytes = "abcdef"});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
                                "abcdef",
                                18));
}

TEST(WriteIdx, RoundTripsEveryNumberOfDimensions) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{600}, {300, 2}, {2, 1, 300}, {1, 300, 1, 2}}) {
    const std::string content(600, '\xff');
    const auto bytes = WriteIdx({.type = ArrayType::kUint8, .shape = shape, .bytes = content});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto read = ReadIdx(*bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->type, ArrayType::kUint8);
    EXPECT_EQ(read->shape, shape);
    EXPECT_EQ(read->bytes, content);
  }
}

TEST(WriteIdx, RefusesOtherTypesAndShapes) {
  EXPECT_THAT(ErrorOf(WriteIdx({.type = ArrayType::kFloat32, .shape = {1}, .bytes = "abcd"})), HasSubstr("unsigned"));
  const auto bytes = [](std::vector<int64_t> shape) {
    return WriteIdx({.type = ArrayType::kUint8, .shape = std::move(shape), .bytes = ""});
  };
  EXPECT_THAT(ErrorOf(bytes({})), HasSubstr("1 to 4 dimensions, the array has 0"));
  EXPECT_THAT(ErrorOf(bytes({1, 1, 1, 1, 1})), HasSubstr("has 5"));
  EXPECT_THAT(ErrorOf(bytes({int64_t{1} << 32, 0})), HasSubstr("the array is [4294967296, 0]"));
  EXPECT_THAT(ErrorOf(bytes({0, 28})), HasSubstr("1 to 4294967295")) << "is not read either";
}

CifarImages TwoImages() {
  CifarImages images{.pixels = std::string(2 * 3072, '\x10'), .labels = {9, 0}, .num_classes = 10};
  images.pixels[0] = '\xff';
  images.pixels[3072] = '\0';
  return images;
}

TEST(WriteCifar, WritesTheRecordsThatAreRead) {
  const CifarImages images = TwoImages();
  const auto bytes = WriteCifar(images);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "\x09" + images.pixels.substr(0, 3072) + std::string(1, '\0') + images.pixels.substr(3072));
  CifarImages read;
  ASSERT_TRUE(ReadCifar(*bytes, kCifar10RecordBytes, &read).ok());
  EXPECT_EQ(read.pixels, images.pixels);
  EXPECT_EQ(read.labels, images.labels);
  EXPECT_EQ(read.num_classes, 10);
}

TEST(WriteCifar, RefusesWhatRecordsOfCifar10CannotHold) {
  CifarImages images = TwoImages();
  images.labels[1] = 10;
  EXPECT_THAT(ErrorOf(WriteCifar(images)), HasSubstr("label 10 of record 1 is not 0 to 9"));
  images.labels[1] = -1;
  EXPECT_THAT(ErrorOf(WriteCifar(images)), HasSubstr("label -1 of record 1"));
  images = TwoImages();
  images.pixels.pop_back();
  EXPECT_THAT(ErrorOf(WriteCifar(images)), HasSubstr("2 labels and 6143 bytes"));
  EXPECT_THAT(ErrorOf(WriteCifar({.pixels = "", .labels = {}, .num_classes = 10})), HasSubstr("0 labels"));
}

TEST(WriteCifar, MakesUpNoCoarseLabels) {
  CifarImages images;
  ASSERT_TRUE(ReadCifar(std::string(3074, '\x10'), kCifar100RecordBytes, &images).ok());
  EXPECT_THAT(ErrorOf(WriteCifar(images)), HasSubstr("CIFAR-100 need coarse labels"));
}

TEST(WriteCsv, WritesWhatIsWrittenByHand) {
  EXPECT_EQ(*WriteCsv({.columns = {"a", "b"}, .num_rows = 2, .values = {1, 0.1, -2.5, 1e300}, .lines = {}}),
            "a,b\n1,0.1\n-2.5,1e+300\n");
  EXPECT_EQ(*WriteCsv({.columns = {"0", "1"}, .num_rows = 1, .values = {1, 2}, .lines = {}}), "1,2\n");
}

TEST(WriteCsv, RoundTripsEveryDouble) {
  using Limits = std::numeric_limits<double>;
  CsvTable table{.columns = {"x", "", "y z"}, .num_rows = 3, .values = {}, .lines = {}};
  table.values = {
      0.1, -0.0, 1.0 / 3, Limits::max(), Limits::lowest(), Limits::min(), 9007199254740993.0, Limits::denorm_min(),
      0.1f};
  const auto text = WriteCsv(table);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto read = ReadCsv(*text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->columns, table.columns);
  ASSERT_EQ(read->values, table.values);
  EXPECT_TRUE(std::signbit(read->values[1]));
  EXPECT_THAT(read->lines, ElementsAre(2, 3, 4));
}

TEST(WriteCsv, RefusesColumnsThatNoHeaderTells) {
  const auto error = [](std::vector<std::string> columns) {
    const std::vector<double> values(columns.size(), 1);
    return ErrorOf(WriteCsv({.columns = std::move(columns), .num_rows = 1, .values = values, .lines = {}}));
  };
  EXPECT_THAT(error({"a,b", "c"}), HasSubstr("rename them: a,b,c"));
  EXPECT_THAT(error({"a\nb", "c"}), HasSubstr("rename"));
  EXPECT_THAT(error({"a\rb", "c"}), HasSubstr("rename"));
  EXPECT_THAT(error({" a", "c"}), HasSubstr("rename"));
  EXPECT_THAT(error({"1", "2"}), HasSubstr("rename")) << "would be a row";
  EXPECT_THAT(error({""}), HasSubstr("rename")) << "would be an empty line";
}

TEST(WriteCsv, RefusesWhatIsNoTableOfNumbers) {
  EXPECT_THAT(ErrorOf(WriteCsv({.columns = {"a", "b"}, .num_rows = 1, .values = {1, NAN}, .lines = {}})),
              HasSubstr("row 0, column b: nan is not a finite number"));
  EXPECT_THAT(ErrorOf(WriteCsv({.columns = {"a", "b"}, .num_rows = 2, .values = {1, 2, 3}, .lines = {}})),
              HasSubstr("3 values are not 2 rows of 2"));
  EXPECT_THAT(ErrorOf(WriteCsv({.columns = {"a"}, .num_rows = 0, .values = {}, .lines = {}})), HasSubstr("0 rows"));
  EXPECT_FALSE(WriteCsv({}).ok());
}

}  // namespace
}  // namespace chainfleet
