#include "client/cli/dataset_files.h"

#include <unistd.h>

#include <filesystem>

#include "client/cli/exit_code.h"
#include "core/base/file_system.h"
#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Dataset Described(v1::InputType type, const std::vector<int64_t>& shape, int64_t num_rows, int64_t num_classes) {
  v1::Dataset dataset;
  dataset.set_name("mine");
  dataset.set_input_type(type);
  dataset.mutable_input_shape()->Add(shape.begin(), shape.end());
  dataset.set_num_rows(num_rows);
  dataset.set_num_classes(num_classes);
  dataset.set_target_type(num_classes > 0 ? v1::LABELS : v1::FLOAT32_TARGETS);
  dataset.mutable_normalisation()->add_mean(0);
  return dataset;
}

std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

TEST(CheckDatasetFormat, KnowsWhatEachFormatHolds) {
  const auto holds = [](const v1::Dataset& dataset) {
    std::vector<std::string> formats;
    for (const std::string& format : kDatasetFormats) {
      const absl::Status status = CheckDatasetFormat(dataset, format);
      if (status.ok()) formats.push_back(format);
      EXPECT_TRUE(status.ok() || ReasonOf(status) == "CANNOT_HOLD") << status;
    }
    return formats;
  };
  EXPECT_THAT(holds(Described(v1::UINT8, {3, 32, 32}, 5, 10)), ElementsAre("npz", "zarr", "idx", "cifar"));
  EXPECT_THAT(holds(Described(v1::UINT8, {3, 32, 32}, 5, 11)), ElementsAre("npz", "zarr", "idx"));
  EXPECT_THAT(holds(Described(v1::UINT8, {3, 32, 32}, 5, 0)), ElementsAre("npz", "zarr"));
  EXPECT_THAT(holds(Described(v1::UINT8, {7}, 5, 256)), ElementsAre("npz", "zarr", "idx"));
  EXPECT_THAT(holds(Described(v1::UINT8, {7}, 5, 257)), ElementsAre("npz", "zarr"));
  EXPECT_THAT(holds(Described(v1::UINT8, {1, 2, 3, 4}, 5, 2)), ElementsAre("npz", "zarr"));
  EXPECT_THAT(holds(Described(v1::FLOAT32, {13}, 5, 0)), ElementsAre("npz", "zarr", "csv"));
  EXPECT_THAT(holds(Described(v1::FLOAT32, {13}, 5, 700)), ElementsAre("npz", "zarr", "csv"));
  EXPECT_THAT(holds(Described(v1::FLOAT32, {3, 32, 32}, 5, 10)), ElementsAre("npz", "zarr"));
}

TEST(CheckDatasetFormat, RefusesWhatCouldNotBePutAgainOrRead) {
  constexpr int64_t kRows = 1024 * limits::kMiB;  // one byte each
  EXPECT_TRUE(CheckDatasetFormat(Described(v1::UINT8, {1}, kRows, 2), "idx").ok());
  for (const auto& [dataset, format] : {std::pair(Described(v1::UINT8, {1}, kRows + 1, 2), "idx"),
                                        std::pair(Described(v1::UINT8, {1}, kRows, 2), "npz"),
                                        std::pair(Described(v1::FLOAT32, {1}, kRows, 0), "csv")}) {
    const absl::Status status = CheckDatasetFormat(dataset, format);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << format << status;
    EXPECT_THAT(ErrorOf(status), HasSubstr("over the 2048 MiB that one upload may hold"));
  }
  const absl::Status row = CheckDatasetFormat(Described(v1::UINT8, {15 * limits::kMiB}, 1, 2), "npz");
  EXPECT_THAT(ErrorOf(row), HasSubstr("a row of data set mine has 15728640 bytes"));
}

TEST(CheckDatasetPath, WantsTheEndingThatPutTellsFormatsBy) {
  EXPECT_TRUE(CheckDatasetPath("csv", "a/b.csv").ok());
  EXPECT_TRUE(CheckDatasetPath("idx", "a/b").ok());
  EXPECT_EQ(ExitCodeOf(CheckDatasetPath("cifar", "json")), kExitUsage);
}

TEST(RowsPerCall, FitsAMessageAndIsAtLeastOne) {
  const auto rows = [](int64_t bytes) { return RowsPerCall(Described(v1::UINT8, {bytes}, 9, 2)); };
  EXPECT_EQ(rows(1), 8 * limits::kMiB / 17);
  EXPECT_EQ(rows(14 * limits::kMiB), 1);
}

v1::DatasetRowValues Rows(const std::string& inputs, const std::vector<int32_t>& labels) {
  v1::DatasetRowValues rows;
  rows.set_type(v1::UINT8);
  rows.set_inputs(inputs);
  rows.mutable_labels()->Add(labels.begin(), labels.end());
  return rows;
}

TEST(DatasetFiles, RefusesRowsOfAnotherDataSet) {
  DatasetFiles files(Described(v1::UINT8, {2}, 4, 2), "npz");
  EXPECT_TRUE(files.Add(Rows("abcd", {0, 1})).ok());
  EXPECT_TRUE(absl::IsAborted(files.Add(Rows("abcd", {0}))));
  EXPECT_TRUE(absl::IsAborted(files.Add(Rows("", {}))));
  v1::DatasetRowValues floats = Rows("abcd", {0, 1});
  floats.set_type(v1::FLOAT32);
  EXPECT_TRUE(absl::IsAborted(files.Add(floats)));
}

TEST(DatasetFiles, WritesIdxOfAllRowsInOrder) {
  const std::string start = ::testing::TempDir() + "dataset_files_test-" + std::to_string(::getpid());
  DatasetFiles files(Described(v1::UINT8, {1, 1, 2}, 3, 256), "idx");
  ASSERT_TRUE(files.Add(Rows("abcd", {0, 255})).ok());
  ASSERT_TRUE(files.Add(Rows("ef", {3})).ok());
  EXPECT_THAT(files.Differences(), IsEmpty());
  const auto paths = files.WriteTo(start);
  ASSERT_TRUE(paths.ok()) << paths.status();
  ASSERT_THAT(*paths, ElementsAre(start + "-images-idx3-ubyte", start + "-labels-idx1-ubyte"));
  EXPECT_EQ(*RealFileSystem()->Read((*paths)[0]),
            std::string("\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02", 16) + "abcdef");
  EXPECT_EQ(*RealFileSystem()->Read((*paths)[1]), std::string("\0\0\x08\x01\0\0\0\x03\0\xff\x03", 11));
  for (const std::string& path : *paths) std::filesystem::remove(path);
}

TEST(DatasetFiles, SaysWhatAFormatDoesNotTell) {
  DatasetFiles npz(Described(v1::UINT8, {2}, 1, 10), "npz");
  ASSERT_TRUE(npz.Add(Rows("ab", {6})).ok());
  EXPECT_THAT(npz.Differences(), ElementsAre(HasSubstr("has 7, not 10")));
}

}  // namespace
}  // namespace chainfleet
