// Compares norms of each example's gradient of networks in ATen operations with gradients of batches of one.
#include "worker/numerics/models/example_norms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/domain/model_spec.h"
#include "tests/support/exported_files.h"
#include "tests/support/network_fixture.h"
#include "tests/support/sequence_layers.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

constexpr int64_t kRows = 2, kImages = 5, kExamples = 40;

// Every kind of layer whose parameters have norms by example, in every place where the channels of one chain could be
// confused with another's.
LayerList EveryLayer() {
  const LayerList branch = {{ConvLayer{.out_channels = 6, .padding = 1, .groups = 2, .bias = false}},
                            {FrnLayer{.threshold = false}}};
  const LayerList shortcut = {{ConvLayer{.out_channels = 6, .kernel = 1}}};
  return {{ConvLayer{.out_channels = 4, .kernel = 3, .stride = 2, .padding = 1}},
          {FrnLayer{}},
          {ResidualLayer{branch, shortcut}},
          {ConcatLayer{{{ConvLayer{.out_channels = 3, .kernel = 3, .padding = 1}}, {ReluLayer{}}}}},
          {GroupNormLayer{.groups = 3}},
          {MaxPoolLayer{}},
          {LinearLayer{.outputs = 7, .bias = false}},
          {LayerNormLayer{}},
          {ReluLayer{}},
          {LinearLayer{}}};
}

void ExpectNormsOfBatchesOfOne(Potential* potential, const ThetaArena& theta) {
  const std::vector<int64_t> ids = SomeIds(kRows, kImages, kExamples);
  ThetaArena gradient = theta.Clone(), plain = theta.Clone();
  std::vector<double> energy(kRows), norms(kRows * kImages);
  ASSERT_TRUE(potential->EvaluateWithNorms(theta, {ids.data(), kImages}, &gradient, energy.data(), norms.data()));
  potential->Evaluate(theta, {ids.data(), kImages}, &plain, energy.data());
  for (int64_t row = 0; row < kRows; ++row) {
    const std::vector<float> with = gradient.ReadRow(row), without = plain.ReadRow(row);
    for (size_t p = 0; p < with.size(); ++p) {
      ASSERT_NEAR(with[p], without[p], 1e-4 * std::abs(without[p]) + 1e-4) << row << ", " << p;
    }
  }
  for (int64_t i = 0; i < kImages; ++i) {
    const int64_t one[] = {ids[i], ids[kImages + i]};
    potential->Evaluate(theta, {one, 1}, &plain, energy.data());
    for (int64_t row = 0; row < kRows; ++row) {
      double norm = 0;
      for (const float g : plain.ReadRow(row)) norm += std::pow(g / static_cast<double>(kExamples), 2);
      EXPECT_NEAR(norms[row * kImages + i], norm, 1e-4 * norm) << row << ", " << i;
    }
  }
}

struct Case {
  std::string name;
  ModelSpec model;
  ChainBatching batching;
  int64_t side = 11;  // side of the images; 0: rows of 12 bytes, as they are stored
};

class ExampleNorms : public ::testing::TestWithParam<Case> {};

TEST_P(ExampleNorms, MatchBatchesOfOne) {
  const int64_t side = GetParam().side;
  const std::vector<int64_t> shape = side > 0 ? std::vector<int64_t>{3, side, side} : std::vector<int64_t>{12};
  const auto data = SyntheticImages(kExamples, shape);
  NetworkShape network = *InferNetwork(GetParam().model, shape, 10);
  const auto layout = std::make_shared<const Layout>(network.parameters);
  const Normalisation normalisation =
      side > 0 ? Normalisation{{0.5, 0.4, 0.6}, {0.29, 0.3, 0.2}} : Normalisation{{0}, {1.0 / 255}};
  const NetworkSettings settings = {normalisation, {}, /*prior_precision=*/0};
  const auto potential = MakeEagerPotential(std::move(network), layout, data, settings, Device{}, GetParam().batching);
  const ThetaArena theta = RandomTheta(layout, kRows);
  ExpectNormsOfBatchesOfOne(potential.get(), theta);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, ExampleNorms,
    ::testing::Values(Case{"layers_apart", {LayeredModel{EveryLayer()}}, ChainBatching::kApart},
                      Case{"layers_together", {LayeredModel{EveryLayer()}}, ChainBatching::kTogether},
                      Case{"sequences_apart", {LayeredModel{SequenceLayers()}}, ChainBatching::kApart},
                      Case{"sequences_together", {LayeredModel{SequenceLayers()}}, ChainBatching::kTogether},
                      Case{"tokens", {LayeredModel{TokenLayers()}}, ChainBatching::kTogether, 0},
                      Case{"apart_tokens", {LayeredModel{TokenLayers()}}, ChainBatching::kApart, 0},
                      Case{"resnet20_frn", {BuiltinModel{"resnet20-frn", {}, 0.125}}, ChainBatching::kTogether},
                      Case{"cnn5", {BuiltinModel{"cnn5", {}, 0.125}}, ChainBatching::kApart, 28},
                      Case{"vgg16", {BuiltinModel{"vgg16", {}, 0.125}}, ChainBatching::kApart, 32}),
    [](const auto& info) { return info.param.name; });

// Without frozen parameters, and with a trunk that runs once for all rows.
TEST(ExampleNormsOfAStoredNetwork, MatchBatchesOfOne) {
  const std::vector<int64_t> shape = {3, 8, 8};
  const auto data = SyntheticImages(kExamples, shape);
  for (const std::vector<std::string>& sample : {std::vector<std::string>{}, std::vector<std::string>{"out.*"}}) {
    const auto network =
        ExportedNetwork::Load(ExportedModelOf(ReadExportedData("residual.pt2")), shape, 10, at::kCPU, {}, sample);
    ASSERT_TRUE(network.ok()) << network.status();
    const auto layout = std::make_shared<const Layout>((*network)->shape().parameters);
    const auto potential = MakeEagerPotential((*network)->shape(), layout, data, {{{0.5}, {0.29}}, {}, 0}, Device{},
                                              ChainBatching::kApart, *network);
    ExpectNormsOfBatchesOfOne(potential.get(), RandomTheta(layout, kRows));
  }
}

TEST(ExampleNormsOfBatchNorm, AreNone) {
  const auto data = SyntheticImages(kExamples, {3, 11, 11});
  NetworkShape network = *InferNetwork(
      {LayeredModel{{{ConvLayer{.out_channels = 2}}, {BatchNormLayer{}}, {LinearLayer{}}}}}, {3, 11, 11}, 10);
  const auto layout = std::make_shared<const Layout>(network.parameters);
  const auto potential = MakeEagerPotential(
      std::move(network), layout, data, {{{0.5, 0.4, 0.6}, {0.29, 0.3, 0.2}}, {}, 0}, Device{}, ChainBatching::kApart);
  const ThetaArena theta = RandomTheta(layout, 1);
  ThetaArena gradient = theta.Clone();
  const std::vector<int64_t> ids = {0, 1};
  double energy, norms[2];
  EXPECT_FALSE(potential->EvaluateWithNorms(theta, {ids.data(), 2}, &gradient, &energy, norms));
}

}  // namespace
}  // namespace chainfleet
