// Compares predictions with stacked draws, as on a GPU, with predictions of the CPU, draw by draw.
#include "tests/support/predictor_parity.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/regression_dataset.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/predict/device_rows.h"
#include "worker/numerics/predict/stack_cache.h"

namespace chainfleet {
namespace {

TEST(StackedPass, OutputsOfTheBuiltInNetworksAreThoseOfBlocks) {
  const auto images = SyntheticImages(80);
  for (const char* name : {"lenet5", "mlp"}) ExpectPredictorParity({BuiltinModel{name, {}}}, *images, 37, 5);
  const auto small = SyntheticImages(700, {2}, 3);
  ExpectPredictorParity({BuiltinModel{"softmax_regression", {}}}, *small, 600,
                        150);  // blocks of rows and groups of draws
}

TEST(StackedPass, TakesStatisticsOfBatchNormFromEachDraw) {
  const LayerList layers = {{ConvLayer{.out_channels = 4, .stride = 2, .padding = 2}},
                            {BatchNormLayer{}},
                            {ReluLayer{}},
                            {ResidualLayer{{{ConvLayer{.out_channels = 4, .padding = 1}}, {ReluLayer{}}}, {}}},
                            {FlattenLayer{}},
                            {LinearLayer{9}},
                            {DropoutLayer{}},
                            {LinearLayer{}}};
  const auto data = SyntheticImages(40, {3, 8, 8}, 10);
  ExpectPredictorParity({LayeredModel{layers}}, *data, 21, 6);
}

TEST(StackedPass, ChangesCorruptedRowsAlike) {
  const Corruption corruption{"gaussian_noise", 3, 7};
  ExpectPredictorParity({BuiltinModel{"mlp", {}}}, *SyntheticImages(80), 30, 4, &corruption);
}

TEST(StackedPass, GivesMomentsOfARegressionWhoseNoiseIsSampled) {
  const ModelSpec model{LayeredModel{{{LinearLayer{6}}, {ReluLayer{}}, {LinearLayer{}}}},
                        GaussianLikelihood{.variance = {}, .learned = true}};
  ExpectPredictorParity(model, *Resident(MakeTable(50, 4, false)), 33, 7);
}

// Softmax regression over [n, 2] floats, 600 rows of one value.
class KeptRows : public ::testing::Test {
 protected:
  static InputTensor Rows(float value) {
    const std::vector<float> values(1200, value);
    return {InputType::kFloat32, {600, 2}, std::string(reinterpret_cast<const char*>(values.data()), 4800)};
  }
  std::vector<double> Sums(const InputTensor& inputs, std::shared_ptr<DeviceRows>* kept, int32_t chain = 0) {
    const auto sums = both_.stacked->Predict({SomeDraws(3, both_, chain)}, inputs, false, kept);
    EXPECT_TRUE(sums.ok()) << sums.status();
    return sums->at(0).classes().sum_wp;
  }
  const BothWays both_ =
      Predictors({BuiltinModel{"softmax_regression", {}}}, SyntheticImages(4, {2}, 3)->description(), {});
};

TEST_F(KeptRows, AreReadOnceForAllCallsAboutThem) {
  InputTensor inputs = Rows(1);
  std::shared_ptr<DeviceRows> kept;
  const auto first = Sums(inputs, &kept), of_others = Sums(inputs, nullptr, 1);
  ASSERT_EQ(kept->blocks.size(), 2u);
  EXPECT_EQ(kept->room, kMaxDeviceRowBytes - 4800);
  inputs.bytes = Rows(2).bytes;  // visible to a call that reads the bytes
  EXPECT_EQ(Sums(inputs, &kept), first);
  EXPECT_EQ(Sums(inputs, &kept, 1), of_others) << "other draws of the same rows";
  EXPECT_EQ(kept->room, kMaxDeviceRowBytes - 4800);
}

TEST_F(KeptRows, BelongToTheirShardAndNotToAnAddress) {
  InputTensor inputs = Rows(1);
  std::shared_ptr<DeviceRows> of_first, of_second;
  const auto first = Sums(inputs, &of_first);
  inputs.bytes.assign(Rows(2).bytes);  // another shard's, at the same address
  const auto second = Sums(inputs, &of_second);
  EXPECT_NE(second, first);
  EXPECT_EQ(Sums(inputs, nullptr), second);
}

TEST_F(KeptRows, AreMadeAgainWhereTheyDoNotFit) {
  InputTensor inputs = Rows(1);
  const auto kept = std::make_shared<DeviceRows>(DeviceRows{.room = 512 * 8, .blocks = {}});
  auto pointer = kept;
  const auto first = Sums(inputs, &pointer);
  EXPECT_EQ(kept->room, 0);
  EXPECT_EQ(kept->blocks.size(), 1u);
  inputs.bytes = Rows(2).bytes;
  const auto again = Sums(inputs, &pointer), other = Sums(inputs, nullptr);
  EXPECT_EQ(again.front(), first.front());
  EXPECT_NE(again.back(), first.back()) << "row 599 is of a block that is not kept";
  EXPECT_EQ(again.back(), other.back());
}

// Draws of 1 KiB from one object, each with its number as values.
DrawStack Draws(const std::string& object, const std::vector<int64_t>& indices) {
  DrawStack draws;
  for (const int64_t index : indices) {
    draws.theta.push_back(std::make_shared<const std::vector<float>>(256, static_cast<float>(index)));
    draws.ids.push_back({object, index});
  }
  return draws;
}

TEST(StackCache, KeepsTheLatestThatWereAskedFor) {
  const DrawStack draws = Draws("a", {1, 2, 3, 4});
  StackCache cache(at::kCPU, 3 << 10);
  const at::Tensor two = cache.Get(draws, 0, 2);
  EXPECT_EQ(two.sizes(), at::IntArrayRef({2, 256}));
  EXPECT_EQ(two[1][255].item<float>(), 2);
  EXPECT_TRUE(cache.Get(draws, 0, 2).is_same(two));
  EXPECT_EQ(cache.Get(draws, 2, 1)[0][0].item<float>(), 3);
  EXPECT_EQ(cache.bytes(), 3 << 10);
  EXPECT_TRUE(cache.Get(draws, 0, 2).is_same(two));
  cache.Get(draws, 3, 1);  // evicts the stack of draw 3, the least recently used
  EXPECT_TRUE(cache.Get(draws, 0, 2).is_same(two));
  EXPECT_EQ(cache.bytes(), 3 << 10);
  EXPECT_EQ(cache.Get(draws, 0, 4).size(0), 4) << "larger than the cache";
  EXPECT_LE(cache.bytes(), 3 << 10);
}

TEST(StackCache, KnowsDrawsThatWereReadAgainByTheirObject) {
  StackCache cache(at::kCPU);
  const at::Tensor kept = cache.Get(Draws("a", {1, 2}), 0, 2);
  EXPECT_TRUE(cache.Get(Draws("a", {1, 2}), 0, 2).is_same(kept)) << "other vectors, the same draws";
  EXPECT_TRUE(cache.Get(Draws("a", {0, 1, 2}), 1, 2).is_same(kept)) << "within more";
  EXPECT_EQ(cache.bytes(), 2 << 10);
  EXPECT_FALSE(cache.Get(Draws("b", {1, 2}), 0, 2).is_same(kept));
  EXPECT_FALSE(cache.Get(Draws("a", {2, 1}), 0, 2).is_same(kept));
  EXPECT_FALSE(cache.Get(Draws("a", {1}), 0, 1).is_same(kept));
  DrawStack anchors = Draws("a", {1, 2});
  anchors.kind = DrawKind::kThetaA;
  EXPECT_FALSE(cache.Get(anchors, 0, 2).is_same(kept)) << "the object has both kinds";
}

TEST(StackCache, KeepsNoneThatHaveNoIds) {
  StackCache cache(at::kCPU);
  DrawStack draws = Draws("a", {1}), others = Draws("a", {2});
  draws.ids.clear();
  others.ids.clear();
  EXPECT_EQ(cache.Get(draws, 0, 1)[0][0].item<float>(), 1);
  EXPECT_EQ(cache.Get(others, 0, 1)[0][0].item<float>(), 2);
  EXPECT_EQ(cache.bytes(), 0);
}

}  // namespace
}  // namespace chainfleet
