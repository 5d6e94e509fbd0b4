// Predictions with the draws stacked, the way of a GPU, against those of the CPU, draw by draw.
#include "tests/support/predictor_parity.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/regression_dataset.h"
#include "tests/support/synthetic_dataset.h"
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

TEST(StackCache, KeepsWhatIsAskedForByTheIdentityOfItsDraws) {
  const auto draw = [](float value) { return std::make_shared<const std::vector<float>>(256, value); };  // 1 KiB
  std::vector<StackCache::Draw> draws = {draw(1), draw(2), draw(3), draw(4)};
  StackCache cache(at::kCPU, 3 << 10);
  const at::Tensor two = cache.Get(draws, 0, 2);
  EXPECT_EQ(two.sizes(), at::IntArrayRef({2, 256}));
  EXPECT_EQ(two[1][255].item<float>(), 2);
  EXPECT_TRUE(cache.Get(draws, 0, 2).is_same(two));
  EXPECT_EQ(cache.Get(draws, 2, 1)[0][0].item<float>(), 3);
  EXPECT_EQ(cache.bytes(), 3 << 10);
  EXPECT_TRUE(cache.Get(draws, 0, 2).is_same(two));
  cache.Get(draws, 3, 1);  // in place of that of draw 2, which was asked for longer ago
  EXPECT_TRUE(cache.Get(draws, 0, 2).is_same(two));
  EXPECT_EQ(cache.bytes(), 3 << 10);
  draws[0] = draw(1);  // the same numbers, come back as another
  EXPECT_FALSE(cache.Get(draws, 0, 2).is_same(two));
  EXPECT_EQ(cache.Get(draws, 0, 4).size(0), 4) << "larger than the cache";
  EXPECT_LE(cache.bytes(), 3 << 10);
}

}  // namespace
}  // namespace chainfleet
