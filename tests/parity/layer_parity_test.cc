// Compares every list of layers, all chains in one call, with the plain one-chain reference in double precision. Also
// tests the bits that the CPU's path promises.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/support/network_fixture.h"
#include "tests/support/plain_network.h"
#include "tests/support/sequence_layers.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

using testing::PlainNetwork;

// Every kind of layer in one network.
LayerList AllLayers() {
  const LayerList branch = {
      {ConvLayer{.out_channels = 6, .padding = 1, .groups = 2, .bias = false}}, {BatchNormLayer{}}, {ReluLayer{}}};
  const LayerList shortcut = {{ConvLayer{.out_channels = 6, .kernel = 1}}, {FrnLayer{}}};
  const LayerList narrow = {{LinearLayer{7}}, {BatchNormLayer{}}};
  return {{ConvLayer{.out_channels = 4, .stride = 2, .padding = 2}},
          {MaxPoolLayer{3, 2, 1}},
          {ResidualLayer{branch, shortcut}},
          {ConcatLayer{branch}},
          {AvgPoolLayer{.size = 2, .stride = 1}},
          {FrnLayer{.threshold = false}},
          {GroupNormLayer{.groups = 4}},
          {GeluLayer{}},
          {ResidualLayer{{{ConvLayer{.out_channels = 12, .kernel = 1}}}, {}}},
          {FlattenLayer{}},
          {LinearLayer{9, false}},
          {ConcatLayer{narrow}},
          {LayerNormLayer{}},
          {SoftplusLayer{}},
          {ResidualLayer{{{TanhLayer{}}}, {{LeakyReluLayer{}}}}},
          {SiluLayer{}},
          {BatchNormLayer{.epsilon = 0.01}},
          {ReluLayer{}},
          {DropoutLayer{}},
          {LinearLayer{}}};
}

// Parameters [C, shape...] spread as at the start of a chain, norms near the identity; from the test's own generator.
std::vector<at::Tensor> SpreadParameters(const NetworkShape& network, int64_t chains, at::ScalarType type) {
  std::vector<at::Tensor> parameters;
  uint32_t block = 0;
  for (const ParameterShape& p : network.parameters) {
    const double spread = p.fan_in > 0 ? 1 / std::sqrt(static_cast<double>(p.fan_in)) : 0.2;
    std::vector<int64_t> shape = p.shape;
    shape.insert(shape.begin(), chains);
    at::Tensor values = at::empty({chains * NumValues(p.shape)}, at::kDouble);
    for (int64_t i = 0; i < values.numel(); ++i) {
      const uint32_t word = RandomBlock(RngKey{3}, RngStream::kInit, 0, block++).word[0];
      values.data_ptr<double>()[i] = p.initial + spread * (2.0 * UniformFloat(word) - 1);
    }
    parameters.push_back(values.view(shape).to(type));
  }
  return parameters;
}

at::Tensor SomeInputs(const std::vector<int64_t>& shape) {
  at::Tensor x = at::empty(shape, at::kDouble);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const uint32_t word = RandomBlock(RngKey{4}, RngStream::kProbe, 0, static_cast<uint32_t>(i)).word[0];
    x.data_ptr<double>()[i] = 3.4 * UniformFloat(word) - 1.7;
  }
  return x;
}

std::vector<at::Tensor> Leaves(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& t : tensors) leaves.push_back(t.detach().clone().requires_grad_(true));
  return leaves;
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

// Whole numbers from 0 to 11, and one row that is the padding alone.
at::Tensor SomeTokens(const std::vector<int64_t>& shape) {
  const at::Tensor x = ((SomeInputs(shape) + 1.7) / 3.4 * 12).floor();
  x[0][0].fill_(7);
  return x;
}

// Compares logits and gradients of `chains` networks in one call with each alone.
void ExpectParity(const LayerList& layers, std::vector<int64_t> input_shape, int64_t chains = 2, int64_t n = 4) {
  const auto network = InferNetwork(layers, input_shape, 10, "layers");
  ASSERT_TRUE(network.ok()) << network.status();
  const auto parameters = Leaves(SpreadParameters(*network, chains, at::kDouble));
  input_shape.insert(input_shape.begin(), {chains, n});
  const at::Tensor x = TakesIndices(layers) ? SomeTokens(input_shape) : SomeInputs(input_shape);
  const at::Tensor weights = SomeInputs({chains, n, 10});
  const at::Tensor logits = EagerLogits(*network, parameters, x);
  (logits * weights).sum().backward();
  for (int64_t c = 0; c < chains; ++c) {
    SCOPED_TRACE("chain " + std::to_string(c));
    PlainNetwork plain;
    for (const at::Tensor& p : parameters) plain.parameters.push_back(p.detach()[c].clone().requires_grad_(true));
    const at::Tensor expected = plain.Logits(layers, x[c]);
    (expected * weights[c]).sum().backward();
    EXPECT_LT(LargestDifference(logits[c], expected), 1e-9 * expected.abs().max().item<double>());
    for (size_t k = 0; k < parameters.size(); ++k) {
      const at::Tensor gradient = plain.parameters[k].grad();
      EXPECT_LT(LargestDifference(parameters[k].grad()[c], gradient),
                1e-8 * gradient.abs().max().item<double>() + 1e-10)
          << network->parameters[k].name;
    }
  }
}

TEST(LayerParity, EveryKindOfLayerAgreesWithThePlainNetwork) { ExpectParity(AllLayers(), {2, 17, 14}, 3, 5); }

TEST(LayerParity, LayersOfSequencesAgreeWithThePlainNetwork) {
  ExpectParity(SequenceLayers(), {2, 17, 14}, 3, 5);
  ExpectParity(TokenLayers(), {12}, 3, 5);
  ExpectParity({{ToSequenceLayer{.width = 6}}, {AttentionLayer{}}, {FlattenLayer{}}, {LinearLayer{}}}, {4, 9});
  ExpectParity(BuiltinLayers({.name = "text-transformer", .width = 0.125, .vocabulary = 12}), {9});
}

TEST(LayerParity, IndicesThatTheNetworkDoesNotKnowThrow) {
  const NetworkShape network = *InferNetwork(TokenLayers(), {12}, 10, "layers");
  const auto parameters = SpreadParameters(network, 1, at::kDouble);
  for (const double index : {-1.0, 256.0, 0.5, std::nan("")}) {
    const at::Tensor x = SomeTokens({1, 3, 12});
    x[0][2][11] = index;
    EXPECT_THROW(EagerLogits(network, parameters, x), c10::ValueError) << index;
  }
}

class BuiltinParity : public ::testing::TestWithParam<const char*> {};

TEST_P(BuiltinParity, AgreesWithThePlainNetwork) {
  const std::string name = GetParam();
  // The deep ones on small images: the reference has no fast kernels.
  const bool deep = name == "resnet50" || name == "wideresnet28x10" || name == "densenet161" || name == "vit-tiny";
  const int64_t side = deep ? 16 : 32;
  ExpectParity(BuiltinLayers({name, {}, 0.125}), {3, side, side});
}

INSTANTIATE_TEST_SUITE_P(AtOneEighth, BuiltinParity,
                         ::testing::Values("softmax_regression", "mlp", "lenet5", "cnn5", "resnet18", "resnet20-frn",
                                           "resnet50", "preresnet164", "wideresnet28x10", "vgg16", "vgg16-bn",
                                           "densenet161", "vit-tiny"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

class ImagenetStemParity : public ::testing::TestWithParam<const char*> {};

TEST_P(ImagenetStemParity, AgreesWithThePlainNetwork) {
  ExpectParity(BuiltinLayers({GetParam(), {}, 0.125, Stem::kImagenet}), {3, 64, 64});
}

INSTANTIATE_TEST_SUITE_P(AtOneEighth, ImagenetStemParity,
                         ::testing::Values("resnet18", "resnet50", "densenet161", "vgg16"),
                         [](const auto& info) { return std::string(info.param); });

struct Fixture {
  explicit Fixture(const LayerList& layers, int64_t rows = 300)
      : data(SyntheticImages(rows, {2, 17, 14})), layers(layers) {
    network = *InferNetwork(layers, {2, 17, 14}, 10, "layers");
    layout = std::make_shared<const Layout>(network.parameters);
    at::set_num_threads(2);
  }
  std::unique_ptr<Potential> Make(ChainBatching batching = ChainBatching::kApart) const {
    return MakeEagerPotential(network, layout, data, {data->description().normalisation, {}, 25}, Device(), batching);
  }
  std::shared_ptr<const ResidentDataset> data;
  LayerList layers;
  NetworkShape network;
  std::shared_ptr<const Layout> layout;
};

struct Outcome {
  std::vector<std::vector<float>> gradient;
  std::vector<double> energy, losses;
  bool operator==(const Outcome&) const = default;
};

// Chains [first, first + count) of a batch of four.
Outcome EvaluateSome(Potential* potential, int64_t first, int64_t count) {
  const ThetaArena theta = RandomTheta(potential->layout(), count, 5 + first);
  ThetaArena gradient = theta.Clone();
  const int64_t n = 12;
  const std::vector<int64_t> ids = SomeIds(4, n, 300);
  std::vector<StepKey> keys;
  for (int64_t c = 0; c < 4; ++c) keys.push_back({RngKey{100 + static_cast<uint64_t>(c)}, 7});
  const BatchRows batch = {ids.data() + first * n, n, keys.data() + first};
  Outcome outcome;
  outcome.energy.resize(count);
  outcome.losses.resize(count * n);
  potential->Evaluate(theta, batch, &gradient, outcome.energy.data());
  potential->Losses(theta, batch, outcome.losses.data());
  for (int64_t r = 0; r < count; ++r) outcome.gradient.push_back(gradient.ReadRow(r));
  return outcome;
}

TEST(LayerPotential, ABatchOfChainsHasTheBitsOfSingleChainsOnAnyNumberOfThreads) {
  const Fixture fixture(AllLayers());
  const auto potential = fixture.Make();
  const Outcome all = EvaluateSome(potential.get(), 0, 4);
  for (int64_t c = 0; c < 4; ++c) {
    const Outcome one = EvaluateSome(potential.get(), c, 1);
    EXPECT_EQ(one.gradient[0], all.gradient[c]) << c;
    EXPECT_EQ(one.energy[0], all.energy[c]) << c;
    EXPECT_EQ(one.losses, std::vector<double>(all.losses.begin() + 12 * c, all.losses.begin() + 12 * (c + 1))) << c;
  }
  at::set_num_threads(1);
  EXPECT_TRUE(EvaluateSome(potential.get(), 0, 4) == all);
}

TEST(LayerPotential, AgreesWithAllChainsInOneCall) {
  const Fixture fixture(AllLayers());
  const Outcome apart = EvaluateSome(fixture.Make().get(), 0, 4);
  const Outcome together = EvaluateSome(fixture.Make(ChainBatching::kTogether).get(), 0, 4);
  for (int64_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(apart.energy[c], together.energy[c], 1e-5 * apart.energy[c]);
    const at::Tensor a = at::tensor(apart.gradient[c]), b = at::tensor(together.gradient[c]);
    EXPECT_LT(LargestDifference(a, b), 1e-4 * a.abs().max().item<double>());
  }
}

TEST(LayerPotential, ANonFiniteChainAffectsNoOther) {
  const Fixture fixture(AllLayers());
  for (const auto batching : {ChainBatching::kApart, ChainBatching::kTogether}) {
    const auto potential = fixture.Make(batching);
    ThetaArena theta = RandomTheta(fixture.layout, 2), gradient = theta.Clone();
    const std::vector<int64_t> ids = SomeIds(2, 8, 300);
    std::vector<double> energy(2);
    potential->Evaluate(theta, {ids.data(), 8}, &gradient, energy.data());
    const std::vector<float> clean = gradient.ReadRow(1);
    theta.row(0)[0] = std::numeric_limits<float>::quiet_NaN();
    potential->Evaluate(theta, {ids.data(), 8}, &gradient, energy.data());
    EXPECT_TRUE(std::isnan(energy[0]));
    EXPECT_EQ(gradient.ReadRow(1), clean);
  }
}

TEST(LayerPotential, DropoutIsNamedByChainAndStepAndOffWithoutAKey) {
  const Fixture fixture({{FlattenLayer{}}, {LinearLayer{64}}, {DropoutLayer{0.25}}, {LinearLayer{}}});
  const auto potential = fixture.Make();
  const ThetaArena theta = RandomTheta(fixture.layout, 1);
  const std::vector<int64_t> ids = SomeIds(1, 20, 300);
  const auto losses = [&](const StepKey* key) {
    std::vector<double> out(20);
    potential->Losses(theta, {ids.data(), 20, key}, out.data());
    return out;
  };
  const StepKey key{RngKey{1}, 5}, later{RngKey{1}, 6}, other{RngKey{2}, 5};
  EXPECT_EQ(losses(&key), losses(&key));
  EXPECT_NE(losses(&key), losses(&later));
  EXPECT_NE(losses(&key), losses(&other));
  EXPECT_EQ(losses(nullptr), losses(nullptr));
}

TEST(LayerPotential, DropoutKeepsTheMeanAndDropsAtItsRate) {
  // The logits are the masked inputs themselves: each is 0 or 1 / (1 - rate).
  const auto network = InferNetwork({{DropoutLayer{0.25}}}, {10}, 10, "layers");
  const StepKey keys[] = {{RngKey{1}, 3}, {RngKey{2}, 3}};
  const at::Tensor y = EagerLogits(*network, {}, at::ones({2, 5000, 10}), {.dropout = keys});
  // 50,000 of each give a standard error of .0019.
  for (int64_t c = 0; c < 2; ++c) EXPECT_NEAR((y[c] == 0).to(at::kDouble).mean().item<double>(), 0.25, 0.008);
  EXPECT_FLOAT_EQ(y.max().item<float>(), 1 / 0.75f);
  EXPECT_FALSE(at::equal(y[0], y[1]));
}

TEST(BatchNormStatistics, MatchAFullPassInStoredOrder) {
  const Fixture fixture(AllLayers());  // 300 rows: batches of 128, 128 and 44
  const auto potential = fixture.Make();
  const ThetaArena theta = RandomTheta(fixture.layout, 3);
  const std::vector<float> draw = theta.ReadRow(0), statistics = potential->DrawStatistics(theta, 0, 1)[0];
  const auto of_all = potential->DrawStatistics(theta, 0, 3);
  EXPECT_EQ(of_all[0], statistics) << "a pure function of the draw";
  EXPECT_EQ(of_all[2], potential->DrawStatistics(theta, 2, 1)[0]);
  EXPECT_NE(of_all[2], of_all[1]);

  const Dataset& data = fixture.data->description();
  std::vector<double> sum(statistics.size(), 0);
  for (int64_t first = 0; first < 300; first += 128) {
    const int64_t count = std::min<int64_t>(128, 300 - first);
    std::vector<uint8_t> bytes(fixture.data->input_bytes().begin() + first * fixture.data->row_size(),
                               fixture.data->input_bytes().begin() + (first + count) * fixture.data->row_size());
    const at::Tensor x = (at::tensor(bytes, at::kDouble).view({count, 2, 17, 14}) / 255 - data.normalisation.mean[0]) /
                         data.normalisation.stddev[0];
    PlainNetwork plain;
    for (size_t k = 0; k < fixture.network.parameters.size(); ++k) {
      plain.parameters.push_back(ParameterView(theta, static_cast<int64_t>(k))[0].to(at::kDouble));
    }
    plain.Logits(fixture.layers, x);
    const at::Tensor seen = at::cat(plain.seen);
    ASSERT_EQ(seen.numel(), static_cast<int64_t>(sum.size()));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += seen[i].item<double>() * count / 300;
  }
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(statistics[i], sum[i], 2e-5 * (1 + std::abs(sum[i]))) << i;
}

}  // namespace
}  // namespace chainfleet
