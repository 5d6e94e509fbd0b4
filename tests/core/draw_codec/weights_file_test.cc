#include "core/store/draw_codec/weights_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FileOf(TensorType type, const std::string& name = "a") {
  const std::string zeros(static_cast<size_t>(2 * ItemBytes(type)), '\0');
  return WriteSafetensors({{name, type, {2}, zeros.data(), static_cast<int64_t>(zeros.size())}}, {});
}

TEST(WeightsFile, IsKnownByItsFirstBytes) {
  EXPECT_TRUE(IsSafetensors(FileOf(TensorType::kFloat32)));
  EXPECT_FALSE(IsSafetensors("PK\x03\x04 an archive"));
  EXPECT_FALSE(IsSafetensors("short"));
}

TEST(WeightsFile, NamesItsTensorsAsPyTorchDoes) {
  const auto file = ReadWeights(FileOf(TensorType::kBfloat16, "0.weight"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(SignaturesOf(*file), ElementsAre(TensorSignature{"0.weight", "bfloat16", {2}}));
}

TEST(WeightsFile, NeedsOnlyTheHeaderForNamesAndShapes) {
  const std::string bytes = FileOf(TensorType::kBfloat16, "0.weight");
  const auto file = ReadWeightsHeader(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(SignaturesOf(*file), ElementsAre(TensorSignature{"0.weight", "bfloat16", {2}}));
  EXPECT_EQ(file->tensors[0].data, nullptr);
  EXPECT_THAT(std::string(ReadWeightsHeader(bytes.substr(0, bytes.size() - 1)).status().message()),
              HasSubstr("the tensors end at 4, the data at 3"));
}

TEST(WeightsFile, RefusesWhatHoldsNoWeights) {
  EXPECT_THAT(std::string(ReadWeights(FileOf(TensorType::kInt64)).status().message()), HasSubstr("no tensor of float"));
  EXPECT_THAT(std::string(ReadWeights(FileOf(TensorType::kFloat32).substr(0, 40)).status().message()),
              HasSubstr("not a valid safetensors file"));
  EXPECT_THAT(std::string(ReadWeights(FileOf(TensorType::kFloat32, std::string(1 << 20, 'a'))).status().message()),
              HasSubstr("too long"));
}

TEST(WeightsFile, HasTheDrawsOfAnExport) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const char* const data = reinterpret_cast<const char*>(values.data());
  const std::string bytes = WriteSafetensors({{"theta/a", TensorType::kFloat32, {3, 2}, data, 24},
                                              {"theta_a/a", TensorType::kFloat32, {1, 2}, data, 8},
                                              {"theta_a/none", TensorType::kFloat32, {0, 2}, data, 0},
                                              {"weights", TensorType::kFloat64, {1}, data, 8}},
                                             {});
  const Safetensors file = ReadWeights(bytes).value();
  EXPECT_EQ(NumDrawsIn(SignaturesOf(file)).value(), 3);
  const Safetensors last = DrawIn(file, DrawKind::kTheta, 2);
  ASSERT_EQ(last.tensors.size(), 1u);
  EXPECT_EQ(last.tensors[0].name, "a");
  EXPECT_EQ(std::string(last.tensors[0].data, 8), std::string(data + 16, 8));
  EXPECT_TRUE(DrawIn(file, DrawKind::kThetaA, 2).tensors.empty());
  EXPECT_EQ(NumDrawsIn({{"a", "float32", {3}}}).value(), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(NumDrawsIn({{"theta/a", "float32", {3}}, {"theta/b", "float32", {2}}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(NumDrawsIn({{"theta/a", "float32", {0, 3}}}).status()));
}

}  // namespace
}  // namespace chainfleet
