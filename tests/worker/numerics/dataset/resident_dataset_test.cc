#include "worker/numerics/dataset/resident_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/draw_codec/safetensors.h"
#include "worker/numerics/dataset/input_rows.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Shard(const std::string& pixels, const std::vector<int32_t>& labels) {
  const int64_t rows = static_cast<int64_t>(labels.size());
  return WriteSafetensors(
      {{"inputs", TensorType::kUint8, {rows, 2}, pixels.data(), static_cast<int64_t>(pixels.size())},
       {"labels", TensorType::kInt32, {rows}, reinterpret_cast<const char*>(labels.data()), rows * 4}},
      {});
}

class ResidentDatasetTest : public ::testing::Test {
 protected:
  ResidentDatasetTest() {
    dataset_.name = "tiny";
    dataset_.input_shape = {2};
    dataset_.num_rows = 3;
    dataset_.targets = Classes{3};
    dataset_.shards = {{0, 2, {.name = "a"}}, {2, 1, {.name = "b"}}};
  }
  void ExpectDataLoss(const std::vector<std::string>& shards, const std::string& what) const {
    const absl::Status status = ResidentDataset::Create(dataset_, shards).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }
  Dataset dataset_;
  const std::string first_ = Shard("abcd", {2, 0}), second_ = Shard("ef", {1});
};

TEST_F(ResidentDatasetTest, JoinsItsShardsInOrder) {
  const auto data = ResidentDataset::Create(dataset_, {first_, second_});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->input_bytes(), "abcdef");
  EXPECT_THAT(std::get<std::vector<int32_t>>((*data)->targets()), ElementsAre(2, 0, 1));
  EXPECT_EQ((*data)->row_size(), 2);
}

TEST_F(ResidentDatasetTest, RefusesBytesThatAreNotThoseDescribed) {
  ExpectDataLoss({first_}, "2 shards, 1 were given");
  ExpectDataLoss({first_, "nonsense"}, "shard b");
  ExpectDataLoss({second_, first_}, "\"inputs\" has another type or shape");
  ExpectDataLoss({first_, Shard("ef", {3})}, "labels outside its 3 classes");
  ExpectDataLoss({first_, WriteSafetensors({}, {})}, "no tensor \"inputs\"");
  dataset_.num_rows = 4;
  ExpectDataLoss({first_, second_}, "describes 4 rows, its shards hold 3");
}

TEST(InputRows, StandardisesBytesAndFloatsPerChannel) {
  const Normalisation normalisation{{0.5, 0.25}, {0.1, 0.0}};
  const unsigned char bytes[] = {0, 0, 0, 0, 0, 255, 51, 0};
  float row[4];
  InputRows(InputType::kUint8, reinterpret_cast<const char*>(bytes), {2, 1, 2}, normalisation).Read(1, row);
  const auto near = [](float value) { return ::testing::FloatNear(value, 1e-5f); };
  EXPECT_THAT(row, ElementsAre(near(-5), near(5), near(-0.05f), near(-0.25f)));
  const float floats[] = {0, 1, 0.2f, 0};
  InputRows(InputType::kFloat32, reinterpret_cast<const char*>(floats), {2, 1, 2}, normalisation).Read(0, row);
  EXPECT_THAT(row, ElementsAre(near(-5), near(5), near(-0.05f), near(-0.25f)));
}

TEST(InputRows, RefusesANormalisationThatDoesNotFit) {
  EXPECT_TRUE(CheckNormalisation({}, {3, 4}).ok());
  EXPECT_TRUE(CheckNormalisation({{0, 0, 0}, {1, 1, 1}}, {3, 4}).ok());
  EXPECT_EQ(CheckNormalisation({{0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}}, {3, 4}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckNormalisation({{0}, {}}, {3, 4}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckNormalisation({{0}, {-1}}, {3, 4}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace chainfleet
