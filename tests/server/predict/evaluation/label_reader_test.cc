#include "server/predict/evaluation/label_reader.h"

#include <string>
#include <vector>

#include "core/store/draw_codec/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string LabelObject(const std::vector<int32_t>& labels) {
  const int64_t count = static_cast<int64_t>(labels.size());
  const char zero = 0;
  return WriteSafetensors(
      {{"inputs", TensorType::kUint8, {1}, &zero, 1},
       {"labels", TensorType::kInt32, {count}, reinterpret_cast<const char*>(labels.data()), 4 * count}},
      {});
}

// Shards "d/0", "d/1", ... of the labels given.
struct Stored {
  explicit Stored(const std::vector<std::vector<int32_t>>& shards) {
    dataset.name = "digits";
    for (const std::vector<int32_t>& labels : shards) {
      const std::string name = "d/" + std::to_string(dataset.shards.size());
      EXPECT_TRUE(blobs.Put(name, LabelObject(labels)).ok());
      dataset.shards.push_back({dataset.num_rows, static_cast<int64_t>(labels.size()), {name, 0, ""}});
      dataset.num_rows += static_cast<int64_t>(labels.size());
    }
  }
  absl::Status Error(int64_t num_classes = 10) const {
    return ReadTargets(blobs, dataset, Classes{num_classes}).status();
  }

  MemoryBlobStore blobs;
  Dataset dataset;
};

TEST(ReadTargets, JoinsTheShardsInRowOrder) {
  const Stored stored({{3, 1}, {4}, {1, 5, 9}});
  EXPECT_THAT(std::get<std::vector<int32_t>>(*ReadTargets(stored.blobs, stored.dataset, Classes{10})),
              ElementsAre(3, 1, 4, 1, 5, 9));
}

TEST(ReadTargets, NamesTheRowOfALabelTheJobHasNoClassFor) {
  const Stored stored({{3, 1}, {4}});
  EXPECT_TRUE(stored.Error(5).ok());
  const absl::Status status = stored.Error(4);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("label 4 in row 2"), HasSubstr("classes 0 to 3")));
  EXPECT_TRUE(absl::IsInvalidArgument(Stored({{-1}, {0}}).Error()));
}

TEST(ReadTargets, SaysWhichObjectIsGone) {
  Stored stored({{3}, {4}});
  ASSERT_TRUE(stored.blobs.Delete("d/1").ok());
  const absl::Status status = stored.Error();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("digits"), HasSubstr("d/1"), HasSubstr("put the data")));
}

TEST(ReadTargets, RefusesAnObjectThatIsNotWhatTheRecordSays) {
  Stored stored({{3, 1}, {4}});
  const auto replace = [&](const std::string& bytes) {
    EXPECT_TRUE(stored.blobs.Delete("d/1").ok());
    EXPECT_TRUE(stored.blobs.Put("d/1", bytes).ok());
  };
  replace("not a tensor file");
  EXPECT_TRUE(absl::IsDataLoss(stored.Error()));
  replace(LabelObject({4, 4}));  // a row too many
  EXPECT_TRUE(absl::IsDataLoss(stored.Error()));
  const std::string label(8, '\0');
  replace(WriteSafetensors({{"labels", TensorType::kInt64, {1}, label.data(), 8}}, {}));
  EXPECT_TRUE(absl::IsDataLoss(stored.Error()));
  replace(WriteSafetensors({{"targets", TensorType::kInt32, {1}, label.data(), 4}}, {}));
  EXPECT_TRUE(absl::IsDataLoss(stored.Error()));
  replace(LabelObject({4}));
  EXPECT_TRUE(stored.Error().ok());
}

TEST(ReadTargets, RefusesARecordWhoseShardsDoNotMakeItsRows) {
  Stored gap({{3, 1}, {4}});
  gap.dataset.shards[1].first_row = 3;
  EXPECT_TRUE(absl::IsDataLoss(gap.Error()));
  Stored missing({{3, 1}, {4}});
  missing.dataset.shards.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(missing.Error()));
}

}  // namespace
}  // namespace chainfleet
