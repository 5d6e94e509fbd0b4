#include "server/predict/evaluation/row_reader.h"

#include <string>
#include <vector>

#include "core/base/limits.h"
#include "core/store/draw_codec/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rows of two bytes (2 r, 2 r + 1) with label 10 r, in shards "d/0", "d/1", ... of so many rows.
struct Stored {
  explicit Stored(const std::vector<int64_t>& shards) {
    dataset.name = "digits";
    dataset.input_shape = {1, 1, 2};
    for (const int64_t rows : shards) {
      std::string inputs;
      std::vector<int32_t> labels;
      for (int64_t row = dataset.num_rows; row < dataset.num_rows + rows; ++row) {
        inputs += {static_cast<char>(2 * row), static_cast<char>(2 * row + 1)};
        labels.push_back(static_cast<int32_t>(10 * row));
      }
      const std::string name = "d/" + std::to_string(dataset.shards.size());
      const std::string bytes = WriteSafetensors(
          {{"inputs", TensorType::kUint8, {rows, 1, 1, 2}, inputs.data(), 2 * rows},
           {"labels", TensorType::kInt32, {rows}, reinterpret_cast<const char*>(labels.data()), 4 * rows}},
          {});
      EXPECT_TRUE(blobs.Put(name, bytes).ok());
      dataset.shards.push_back({dataset.num_rows, rows, {name, 0, ""}});
      dataset.num_rows += rows;
    }
  }

  MemoryBlobStore blobs;
  Dataset dataset;
};

TEST(ReadRows, GivesRowsInTheOrderAskedForWhereverTheyAre) {
  const Stored stored({3, 2});
  const auto rows = ReadRows(stored.blobs, stored.dataset, {4, 0, 2, 4});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->shape, ElementsAre(4, 1, 1, 2));
  EXPECT_THAT(rows->inputs, ElementsAre(8, 9, 0, 1, 4, 5, 8, 9));
  EXPECT_THAT(std::get<std::vector<int32_t>>(rows->targets), ElementsAre(40, 0, 20, 40));
}

TEST(ReadRows, GivesNumbersWhereRowsHaveNumbers) {
  Stored stored({});
  const float inputs[] = {0.5f, -1, 2.25f}, targets[] = {7, 8, 9};
  EXPECT_TRUE(stored.blobs
                  .Put("d/0", WriteSafetensors(
                                  {{"inputs", TensorType::kFloat32, {3, 1}, reinterpret_cast<const char*>(inputs), 12},
                                   {"targets", TensorType::kFloat32, {3}, reinterpret_cast<const char*>(targets), 12}},
                                  {}))
                  .ok());
  stored.dataset.input_type = InputType::kFloat32;
  stored.dataset.targets = Numbers();
  stored.dataset.input_shape = {1};
  stored.dataset.num_rows = 3;
  stored.dataset.shards = {{0, 3, {"d/0", 0, ""}}};
  const auto rows = ReadRows(stored.blobs, stored.dataset, {2});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->inputs, std::string(reinterpret_cast<const char*>(inputs + 2), 4));
  EXPECT_THAT(std::get<std::vector<float>>(rows->targets), ElementsAre(9));
}

TEST(ReadRows, RefusesRowsThatAreNotThere) {
  const Stored stored({3, 2});
  for (const int64_t row : {int64_t{-1}, int64_t{5}}) {
    const absl::Status status = ReadRows(stored.blobs, stored.dataset, {0, row}).status();
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(std::to_string(row)), HasSubstr("0 to 4")));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRows(stored.blobs, stored.dataset, {}).status()));
}

TEST(ReadRows, IsBoundedInRowsAndInBytes) {
  Stored stored({3, 2});
  std::vector<int64_t> rows(15 * limits::kMiB / (2 + 16), 1);  // 2 bytes each
  EXPECT_TRUE(ReadRows(stored.blobs, stored.dataset, rows).ok());
  rows.push_back(1);
  EXPECT_TRUE(absl::IsResourceExhausted(ReadRows(stored.blobs, stored.dataset, rows).status()));
  stored.dataset.input_shape = {3, 2048, 2048};  // 12 MiB a row
  const absl::Status status = ReadRows(stored.blobs, stored.dataset, {0, 1}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("reads 1 rows"));
}

TEST(ReadRows, SaysWhichObjectIsDamaged) {
  Stored stored({3, 2});
  stored.dataset.input_shape = {2};  // not what is stored
  const absl::Status status = ReadRows(stored.blobs, stored.dataset, {4}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("d/1"), HasSubstr("rows 3 to 4")));
}

}  // namespace
}  // namespace chainfleet
