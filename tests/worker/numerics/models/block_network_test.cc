// Compares outputs of blocks of images with the network in double, for networks of every kind of layer.
#include "worker/numerics/models/block_network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hwy/highway.h"
#include "tests/support/exported_files.h"
#include "tests/support/network_fixture.h"
#include "tests/support/script_file.h"
#include "tests/support/sequence_layers.h"
#include "worker/numerics/kernels/lanes.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/scripted_network.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {
namespace {

constexpr int64_t kClasses = 10;

// Every kind of layer, windows that overlap and that leave pixels out, channels around the register blocks.
LayerList EveryLayer() {
  const LayerList joined = {{ConvLayer{.out_channels = 5, .kernel = 1}}, {ReluLayer{}}};
  const LayerList same = {{BatchNormLayer{}}, {ConvLayer{.out_channels = 11, .padding = 1, .bias = false}}};
  const LayerList half = {{ConvLayer{.out_channels = 14, .kernel = 5, .stride = 2, .padding = 2}}, {ReluLayer{}}};
  const LayerList straight = {{ConvLayer{.out_channels = 14, .kernel = 1, .stride = 2}}, {BatchNormLayer{}}};
  return {{ConvLayer{.out_channels = 6, .padding = 1}},
          {BatchNormLayer{}},
          {ReluLayer{}},
          {ConcatLayer{joined}},
          {ResidualLayer{same, {}}},
          {ResidualLayer{half, straight}},
          {GroupNormLayer{.groups = 2}},
          {GeluLayer{}},
          {FrnLayer{}},
          {MaxPoolLayer{.size = 3, .stride = 1, .padding = 1}},
          {AvgPoolLayer{.size = 2}},
          {ConvLayer{.out_channels = 6, .kernel = 2, .groups = 2}},
          {FrnLayer{.threshold = false}},
          {DropoutLayer{}},
          {ConcatLayer{{{MaxPoolLayer{.size = 3, .stride = 1, .padding = 1}}}}},
          {GlobalAvgPoolLayer{}},
          {LinearLayer{19, false}},
          {BatchNormLayer{}},
          {ConcatLayer{{{LinearLayer{3}}}}},
          {SiluLayer{}},
          {LayerNormLayer{}},
          {SoftplusLayer{}},
          {ResidualLayer{{{TanhLayer{}}}, {{LeakyReluLayer{}}}}},
          {ResidualLayer{{{ReluLayer{}}}, {}}},
          {LinearLayer{}}};
}

// mlp and lenet5 run on the fused kernels, the others layer by layer.
class BlockNetworkTest : public ::testing::TestWithParam<std::string> {
 protected:
  BlockNetworkTest() {
    uint32_t i = 0;
    const auto uniform = [&i] { return UniformFloat(RandomBlock(RngKey{1}, RngStream::kInit, 0, i++).word[0]); };
    for (const ParameterShape& parameter : network_.parameters) {
      // Outputs of a layer are about as large as its inputs.
      const bool scale = parameter.name.ends_with("scale");
      const double fan_in = static_cast<double>(NumValues(parameter.shape)) / static_cast<double>(parameter.shape[0]);
      const auto reach = static_cast<float>(parameter.shape.size() > 1 ? std::sqrt(6 / fan_in) : 0.1);
      for (int64_t k = 0; k < NumValues(parameter.shape); ++k) {
        draw_.push_back((scale ? 1 : 0) + (2 * uniform() - 1) * reach);
      }
    }
    for (const ParameterShape& statistic : network_.statistics) {
      for (int64_t k = 0; k < NumValues(statistic.shape); ++k) draw_.push_back(0.1f + uniform());
    }
  }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  // [1, shape...] each, in double.
  std::vector<at::Tensor> Tensors(const std::vector<ParameterShape>& shapes) const {
    std::vector<at::Tensor> tensors;
    for (const ParameterShape& shape : shapes) {
      const float* first = draw_.data() + shape.offset;
      const std::vector<double> values(first, first + NumValues(shape.shape));
      tensors.push_back(at::tensor(values, at::kDouble).view(shape.shape).unsqueeze(0));
    }
    return tensors;
  }

  // [count, K]
  std::vector<float> Outputs(int64_t first, int64_t count) const {
    const auto block = MakeBlockNetwork(network_);
    std::vector<float> outputs;
    RunSingleThreaded(1, [&](int64_t) {
      block->Read(rows_, first, count);
      const float* lanes = block->Outputs(draw_.data());
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t k = 0; k < kClasses; ++k) {
          outputs.push_back(lanes[(i / kLanes * kClasses + k) * kLanes + i % kLanes]);
        }
      }
    });
    return outputs;
  }

  static bool IsSmall() {
    const std::string& name = GetParam();
    return name == "mlp" || name == "lenet5" || name == "every layer" || name == "sequences" || name == "tokens";
  }

  static std::vector<int64_t> InputShape() {
    if (GetParam() == "tokens") return {12};
    if (GetParam() == "every layer" || GetParam() == "sequences") return {2, 9, 10};
    return IsSmall() ? std::vector<int64_t>{1, 28, 28} : std::vector<int64_t>{3, 32, 32};
  }

  static ModelSpec Model() {
    if (GetParam() == "every layer") return {LayeredModel{EveryLayer()}};
    if (GetParam() == "sequences") return {LayeredModel{SequenceLayers()}};
    if (GetParam() == "tokens") return {LayeredModel{TokenLayers()}};
    return {BuiltinModel{GetParam(), {}}};
  }

  const int64_t block_ = IsSmall() ? kMaxBlockRows : kLanes + 1;
  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(80, InputShape());
  const Dataset& description_ = data_->description();
  const NetworkShape network_ = *InferNetwork(Model(), description_.input_shape, kClasses);
  std::vector<float> draw_;
  const InputRows rows_{description_.input_type, data_->input_bytes().data(), description_.input_shape,
                        GetParam() == "tokens" ? Normalisation{{0}, {1.0 / 255}} : description_.normalisation};
};

TEST_P(BlockNetworkTest, AgreesWithTheNetworkInDouble) {
  constexpr int64_t kFirst = 3;
  std::vector<double> x;
  std::vector<float> row(rows_.row_size());
  for (int64_t i = kFirst; i < kFirst + block_; ++i) {
    rows_.Read(i, row.data());
    x.insert(x.end(), row.begin(), row.end());
  }
  std::vector<int64_t> shape = {1, block_};
  shape.insert(shape.end(), description_.input_shape.begin(), description_.input_shape.end());
  const std::vector<at::Tensor> statistics = Tensors(network_.statistics);
  const at::Tensor expected = EagerLogits(network_, Tensors(network_.parameters),
                                          at::tensor(x, at::kDouble).view(shape), {.statistics = &statistics})
                                  .contiguous();
  const std::vector<float> outputs = Outputs(kFirst, block_);
  ASSERT_EQ(expected.numel(), static_cast<int64_t>(outputs.size()));
  const double size = expected.abs().max().item<double>();
  EXPECT_GT(size, 0.1);
  for (int64_t i = 0; i < expected.numel(); ++i) {
    EXPECT_NEAR(outputs[i], expected.const_data_ptr<double>()[i], 1e-5 * size);
  }
}

// The cut into batches, shards or requests changes no bit, on every instruction set of this host.
TEST_P(BlockNetworkTest, GivesAnImageTheSameNumbersInEveryBlock) {
  std::vector<float> with_fma;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const bool fused = (target & (HWY_AVX2 | HWY_AVX3)) != 0;
    if (!fused && !IsSmall()) continue;  // takes too long
    hwy::SetSupportedTargetsForTest(target);
    const std::vector<float> all = Outputs(0, block_);
    for (int64_t count = 1; count < block_; count += IsSmall() ? 1 : 15) {
      const std::vector<float> fewer = Outputs(0, count), last = Outputs(block_ - count, count);
      EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), all.begin())) << hwy::TargetName(target) << ", " << count;
      EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), all.rbegin())) << hwy::TargetName(target) << ", " << count;
    }
    if (!fused) continue;
    if (with_fma.empty()) with_fma = all;
    EXPECT_EQ(all, with_fma) << "processors with fused multiply-add have the same bits";
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, BlockNetworkTest,
                         ::testing::Values("mlp", "lenet5", "every layer", "sequences", "tokens", "cnn5",
                                           "resnet20-frn", "resnet18"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

TEST(LaneBlock, RefusesIndicesThatTheNetworkDoesNotKnow) {
  const NetworkShape network = *InferNetwork(
      {{EmbeddingLayer{.count = 4, .width = 2}}, {FlattenLayer{}}, {LinearLayer{}}}, {1}, kClasses, "layers");
  const std::vector<float> draw(NumParameters(network.parameters), 0.5f), values = {0, 3, 4, -1, 1.5f, NAN};
  const InputRows rows(InputType::kFloat32, reinterpret_cast<const char*>(values.data()), std::vector<int64_t>{1},
                       Normalisation());
  const auto block = MakeBlockNetwork(network);
  for (size_t i = 0; i < values.size(); ++i) {
    block->Read(rows, static_cast<int64_t>(i), 1);
    if (i < 2) {
      EXPECT_NO_THROW(block->Outputs(draw.data())) << values[i];
    } else {
      EXPECT_THROW(block->Outputs(draw.data()), c10::ValueError) << values[i];
    }
  }
}

// Outputs of a row in blocks that end with it, of any number of rows, are those of the row alone, up to rounding those
// of Logits.
void ExpectARowsOwnNumbers(const std::shared_ptr<const StoredNetwork>& stored, const ResidentDataset& data) {
  const Dataset& description = data.description();
  const NetworkShape& network = stored->shape();
  const InputRows rows(description.input_type, data.input_bytes().data(), description.input_shape,
                       description.normalisation);
  std::vector<float> draw;
  for (int64_t i = 0; i < NumParameters(network.parameters); ++i) {
    draw.push_back(UniformFloat(RandomBlock(RngKey{1}, RngStream::kInit, 0, static_cast<uint32_t>(i)).word[0]) - 0.5f);
  }
  for (int64_t i = std::ssize(draw); i < network.draw_size(); ++i)
    draw.push_back(0.5f + 0.1f * static_cast<float>(i % 7));
  const int64_t num_outputs = network.num_outputs;
  const auto outputs = [&](int64_t first, int64_t count) {
    const auto block = MakeBlockNetwork(network, stored);
    std::vector<float> of_last;
    RunSingleThreaded(1, [&](int64_t) {
      block->Read(rows, first, count);
      const float* lanes = block->Outputs(draw.data());
      const int64_t last = count - 1;
      for (int64_t k = 0; k < num_outputs; ++k) {
        of_last.push_back(lanes[(last / kLanes * num_outputs + k) * kLanes + last % kLanes]);
      }
    });
    return of_last;
  };
  const std::vector<float> alone = outputs(66, 1);
  EXPECT_NE(alone, outputs(65, 1));
  for (int64_t count = 2; count <= kMaxBlockRows; ++count) EXPECT_EQ(outputs(67 - count, count), alone) << count;

  std::vector<int64_t> shape = {1, 1};
  shape.insert(shape.end(), network.input_shape.begin(), network.input_shape.end());
  const at::Tensor x = at::zeros(shape);
  rows.Read(66, x.mutable_data_ptr<float>());
  const std::vector<at::Tensor> statistics = TensorsOfDraw(network.statistics, at::tensor(draw));
  const at::Tensor expected =
      stored->Logits(TensorsOfDraw(network.parameters, at::tensor(draw)), x, {.statistics = &statistics}).contiguous();
  const float size = expected.abs().max().item<float>();
  for (int64_t k = 0; k < num_outputs; ++k) EXPECT_NEAR(alone[k], expected.const_data_ptr<float>()[k], 1e-5 * size);
}

// The operations of a stored network depend on the processor, so the bits of its rows are compared for each code path
// that LibTorch has (bits_under.sh).
TEST(ScriptBlock, GivesARowTheSameNumbersInEveryBlock) {
  const auto data = SyntheticImages(80);
  const auto script = ScriptedNetwork::Load(ScriptedMlp({784, 50, 10}), data->description().input_shape, 10, at::kCPU);
  ASSERT_TRUE(script.ok()) << script.status();
  EXPECT_EQ((*script)->PassOfRows().size, 1);
  ExpectARowsOwnNumbers(*script, *data);
}

// The first ten inputs times a parameter; a kernel that rounds rows at odd positions otherwise is exaggerated.
class OddAtOddPositions final : public StoredNetwork {
 public:
  OddAtOddPositions() : StoredNetwork(Shape()) {}

  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x, const ForwardMode&) const override {
    at::Tensor y = x.flatten(2).narrow(2, 0, 10) * parameters[0].view({1, 1, 1});
    y.slice(1, 1, y.size(1), 2).add_(1);
    return y;
  }
  RowsOfPass PassOfRows() const override { return {.size = 12, .step = 2}; }

 private:
  static NetworkShape Shape() {
    NetworkShape shape;
    shape.input_shape = {1, 28, 28};
    shape.num_outputs = 10;
    shape.parameters = {{.name = "scale", .shape = {1}}};
    return shape;
  }
};

TEST(ScriptBlock, LeavesOutPositionsBetweenSteps) {
  ExpectARowsOwnNumbers(std::make_shared<const OddAtOddPositions>(), *SyntheticImages(80));
}

TEST(ScriptBlock, GivesARowOfAnExportedNetworkTheSameNumbersInEveryBlock) {
  for (const ExportedFile& file : ExportedFiles()) {
    SCOPED_TRACE(file.name);
    ExpectARowsOwnNumbers(file.Load(), *file.Data(80));
  }
}

}  // namespace
}  // namespace chainfleet
