#include "client/cli/state_dicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

template <typename T>
TensorView View(const std::string& name, TensorType type, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {name, type, std::move(shape), reinterpret_cast<const char*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(T))};
}

const std::vector<float> kBias = {1, 2, 3}, kWeight = {1, 2, 3, 4, 5, 6};
const std::vector<double> kOnes = {1, 1, 1}, kOthers = {1, 2, 1};

std::string Exported(const std::vector<double>& weights, std::vector<int64_t> of_bias = {3, 1}) {
  return WriteSafetensors({View("theta/fc.weight", TensorType::kFloat32, {3, 1, 2}, kWeight),
                           View("theta/fc.bias", TensorType::kFloat32, std::move(of_bias), kBias),
                           View("theta_a/fc.bias", TensorType::kFloat32, {3, 1}, kBias),
                           View("weight", TensorType::kFloat64, {3}, weights)},
                          {{"chain", "0"}});
}

TEST(StateDictsOf, TakesTheDrawsOfAnExportApart) {
  const auto networks = StateDictsOf(Exported(kOnes));
  ASSERT_TRUE(networks.ok()) << networks.status();
  ASSERT_EQ(networks->size(), 3u);
  const Safetensors second = ParseSafetensors(networks->at(1)).value();
  ASSERT_EQ(second.tensors.size(), 2u);
  EXPECT_EQ(second.Find("fc.weight")->shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(std::string(second.Find("fc.weight")->data, 8), std::string(reinterpret_cast<const char*>(&kWeight[2]), 8));
  EXPECT_EQ(std::string(second.Find("fc.bias")->data, 4), std::string(reinterpret_cast<const char*>(&kBias[1]), 4));
}

TEST(StateDictsOf, LeavesAStateDictAsItIs) {
  const std::string file = WriteSafetensors({View("fc.bias", TensorType::kFloat32, {3}, kBias)}, {{"format", "pt"}});
  EXPECT_THAT(StateDictsOf(file).value(), testing::ElementsAre(file));
}

TEST(StateDictsOf, RefusesWeightedDrawsAndWhatItCannotTakeApart) {
  EXPECT_TRUE(absl::IsInvalidArgument(StateDictsOf(Exported(kOthers)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(StateDictsOf(Exported(kOnes, {1, 3})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(StateDictsOf("no safetensors").status()));
  const TensorView endless{"theta/fc.bias", TensorType::kFloat32, {int64_t{1} << 40, 0}};
  EXPECT_TRUE(absl::IsInvalidArgument(StateDictsOf(WriteSafetensors({endless}, {})).status()));
}

}  // namespace
}  // namespace chainfleet
