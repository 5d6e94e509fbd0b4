#include "core/domain/network_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/base/limits.h"
#include "core/domain/job_spec.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FieldViolation Misfit(const LayerList& layers, const std::vector<int64_t>& input_shape, int64_t classes = 10) {
  const absl::Status status = InferNetwork(ModelSpec{LayeredModel{layers}}, input_shape, classes).status();
  const auto violations = FieldViolationsOf(status);
  return violations.empty() ? FieldViolation{"", status.ToString()} : violations[0];
}

TEST(NetworkShape, PlacesEveryLayerAndNamesItsTensors) {
  const LayerList block = {{ConvLayer{.out_channels = 8, .padding = 1, .bias = false}}, {BatchNormLayer()}};
  const auto network = InferNetwork({{ConvLayer{.out_channels = 4, .kernel = 5, .stride = 2}},
                                     {ResidualLayer{block, {{ConvLayer{.out_channels = 8, .kernel = 1}}}}},
                                     {ConcatLayer{block}},
                                     {MaxPoolLayer{.size = 3, .stride = 2, .padding = 1}},
                                     {AvgPoolLayer()},
                                     {GlobalAvgPoolLayer()},
                                     {LinearLayer{}}},
                                    {3, 33, 30}, 7, "model.layers");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_THAT(network->layers[0].output, ElementsAre(4, 15, 13));
  EXPECT_THAT(network->layers[1].output, ElementsAre(8, 15, 13));
  EXPECT_THAT(network->layers[2].output, ElementsAre(16, 15, 13));
  EXPECT_THAT(network->layers[3].output, ElementsAre(16, 8, 7));
  EXPECT_THAT(network->layers[4].output, ElementsAre(16, 4, 3));
  EXPECT_THAT(network->layers[6].output, ElementsAre(7));
  std::vector<std::string> names;
  for (const auto& p : network->parameters) names.push_back(p.name);
  EXPECT_THAT(names,
              ElementsAre("conv1.weight", "conv1.bias", "residual1.branch.conv1.weight", "residual1.branch.bn1.scale",
                          "residual1.branch.bn1.shift", "residual1.shortcut.conv1.weight",
                          "residual1.shortcut.conv1.bias", "concat1.branch.conv1.weight", "concat1.branch.bn1.scale",
                          "concat1.branch.bn1.shift", "fc1.weight", "fc1.bias"));
  EXPECT_EQ(network->parameters[3].initial, 1) << "a norm starts as the identity";
  EXPECT_EQ(network->parameters[4].initial, 0);
  ASSERT_EQ(network->statistics.size(), 4u);
  EXPECT_EQ(network->statistics[3].name, "concat1.branch.bn1.var");
  EXPECT_EQ(network->statistics[0].offset, NumParameters(network->parameters)) << "statistics follow theta";
}

TEST(NetworkShape, AMisfitNamesTheLayerAndTheShapes) {
  const ConvLayer conv{.out_channels = 8};
  EXPECT_EQ(Misfit({{LinearLayer{}}}, {4}, 1).path, "dataset.name") << "one class";
  const FieldViolation small = Misfit({{conv}, {conv}}, {1, 4, 4});
  EXPECT_EQ(small.path, "model.layers[1]");
  EXPECT_EQ(small.message, "conv2: a window of 3 by 3 with padding 0 does not fit inputs [8, 2, 2]");
  const FieldViolation flat = Misfit({{FlattenLayer()}, {conv}}, {1, 4, 4});
  EXPECT_EQ(flat.message, "conv1: needs inputs [channels, height, width], gets [16]");
  const FieldViolation sum = Misfit({{conv}, {ResidualLayer{{{conv}}, {}}}}, {1, 9, 9});
  EXPECT_EQ(sum.path, "model.layers[1]");
  EXPECT_EQ(sum.message, "residual1: the branch gives [8, 5, 5], the shortcut [8, 7, 7]");
  const FieldViolation inside =
      Misfit({{ResidualLayer{{{conv}, {ConvLayer{.out_channels = 4, .groups = 3}}}, {}}}}, {1, 9, 9});
  EXPECT_EQ(inside.path, "model.layers[0].residual.branch[1]");
  EXPECT_EQ(
      inside.message,
      "residual1.branch.conv2: 3 groups must divide the 8 channels of inputs [8, 7, 7] and the 4 output channels");
  EXPECT_EQ(Misfit({{ConcatLayer{{{conv}}}}}, {1, 9, 9}).message,
            "concat1: the branch gives [8, 7, 7] beside inputs [1, 9, 9]: all but the channels must agree");
  EXPECT_EQ(Misfit({{LinearLayer{11}}}, {5}).message, "fc1: the last layer gives [11], the likelihood takes [10]");
  EXPECT_THAT(Misfit({{FrnLayer()}}, {5}).message, HasSubstr("frn1: needs inputs [channels"));
  EXPECT_THAT(Misfit({{GroupNormLayer{.groups = 1}}}, {5}).message, HasSubstr("group_norm1: needs inputs [channels"));
  EXPECT_EQ(Misfit({{GroupNormLayer{.groups = 2}}}, {3, 4, 4}).message,
            "group_norm1: 2 groups must divide the 3 channels of inputs [3, 4, 4]");
  EXPECT_EQ(Misfit({{GroupNormLayer{}}}, {3, 4, 4}).path, "model.layers[0].group_norm.groups");
  EXPECT_EQ(Misfit({{LayerNormLayer{}}}, {3, 4, 4}).message,
            "layer_norm1: needs a sequence or flat inputs, gets [3, 4, 4]: take group_norm for images");
}

TEST(NetworkShape, PlacesLayersOfSequences) {
  const auto network = InferNetwork({{ConvLayer{.out_channels = 6, .kernel = 4, .stride = 4}},
                                     {ToSequenceLayer{}},
                                     {PositionLayer{}},
                                     {ResidualLayer{{{LayerNormLayer{}}, {AttentionLayer{.heads = 2}}}, {}}},
                                     {LinearLayer{5}},
                                     {Conv1dLayer{.out_channels = 3, .stride = 2, .padding = 1}},
                                     {GlobalAvgPoolLayer{}},
                                     {LinearLayer{}}},
                                    {3, 32, 28}, 7, "model.layers");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_THAT(network->layers[1].output, ElementsAre(56, 6));
  EXPECT_THAT(network->layers[3].output, ElementsAre(56, 6));
  EXPECT_THAT(network->layers[4].output, ElementsAre(56, 5));
  EXPECT_THAT(network->layers[5].output, ElementsAre(28, 3));
  EXPECT_THAT(network->layers[6].output, ElementsAre(3));
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& p : network->parameters) shapes[p.name] = p.shape;
  EXPECT_THAT(shapes["position1.weight"], ElementsAre(56, 6));
  EXPECT_THAT(shapes["residual1.branch.layer_norm1.scale"], ElementsAre(6));
  EXPECT_THAT(shapes["residual1.branch.attention1.in_weight"], ElementsAre(18, 6));
  EXPECT_THAT(shapes["residual1.branch.attention1.in_bias"], ElementsAre(18));
  EXPECT_THAT(shapes["residual1.branch.attention1.out_weight"], ElementsAre(6, 6));
  EXPECT_THAT(shapes["residual1.branch.attention1.out_bias"], ElementsAre(6));
  EXPECT_THAT(shapes["fc1.weight"], ElementsAre(5, 6));
  EXPECT_THAT(shapes["conv1d1.weight"], ElementsAre(3, 5, 3));
}

TEST(NetworkShape, CountsTheValuesInsideOfAttention) {
  const LayerList layers = {
      {ToSequenceLayer{.width = 4}}, {AttentionLayer{.heads = 2}}, {FlattenLayer{}}, {LinearLayer{}}};
  const auto network = InferNetwork(layers, {40}, 3, "model.layers");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->largest_output, 2 * 10 * 10);
  EXPECT_EQ(network->activation_floats, 40 + (3 * 40 + 2 * 200 + 40 + 40) + 40 + 3);
  EXPECT_EQ(Misfit(layers, {4 * 65536}).message, "attention1: computes too many values to give [65536, 4]");
}

TEST(NetworkShape, KnowsWhichPositionsMayBePadding) {
  const LayerList again = {{FlattenLayer{}}, {ToSequenceLayer{.width = 4}}, {AttentionLayer{}}};
  const auto network = InferNetwork({{EmbeddingLayer{.count = 9, .width = 4, .padding = 0}},
                                     {ResidualLayer{{{AttentionLayer{}}}, again}},
                                     {AttentionLayer{}},
                                     {GlobalAvgPoolLayer{}},
                                     {LinearLayer{}}},
                                    {6}, 3, "model.layers");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_TRUE(network->layers[1].branch[0].padded);
  EXPECT_TRUE(network->layers[1].shortcut[0].padded);
  EXPECT_FALSE(network->layers[1].shortcut[2].padded) << "these are new positions";
  EXPECT_TRUE(network->layers[2].padded);
  EXPECT_TRUE(network->layers[3].padded);
  EXPECT_FALSE(network->layers[4].padded);
  const LayerList narrow = {{FlattenLayer{}}, {ToSequenceLayer{.width = 2}}};
  const auto new_positions = InferNetwork({{EmbeddingLayer{.count = 9, .width = 4, .padding = 0}},
                                           {ResidualLayer{narrow, narrow}},
                                           {AttentionLayer{}},
                                           {GlobalAvgPoolLayer{}},
                                           {LinearLayer{}}},
                                          {6}, 3, "model.layers");
  ASSERT_TRUE(new_positions.ok()) << new_positions.status();
  EXPECT_FALSE(new_positions->layers[2].padded) << "both lists made new positions";
}

TEST(NetworkShape, AMisfitOfASequenceNamesTheLayer) {
  const EmbeddingLayer words{.count = 9, .width = 4, .padding = 0};
  EXPECT_EQ(Misfit({{PositionLayer{}}}, {5}).message,
            "position1: needs a sequence [length, width], gets [5]: put to_sequence before it");
  EXPECT_EQ(Misfit({{ToSequenceLayer{.width = 3}}, {AttentionLayer{.heads = 2}}}, {6}).message,
            "attention1: 2 heads must divide the width of inputs [2, 3]");
  EXPECT_EQ(Misfit({{ToSequenceLayer{.width = 4}}}, {6}).message,
            "to_sequence1: width 4 must divide the values of inputs [6]");
  for (const auto& shape : {std::vector<int64_t>{3, 4, 4}, {6}}) {
    const ToSequenceLayer other{.width = shape.size() == 3 ? std::optional<int64_t>(3) : std::nullopt};
    EXPECT_THAT(Misfit({{other}}, shape).message,
                HasSubstr("to_sequence1: takes images without `width` or flat inputs with `width`, gets ["));
  }
  EXPECT_EQ(Misfit({{ReluLayer{}}, {words}}, {6}).message,
            "embedding1: must be the first layer and take flat indices, gets [6]");
  EXPECT_THAT(Misfit({{ResidualLayer{{{words}, {FlattenLayer{}}}, {}}}}, {6}).message, HasSubstr("must be the first"));
  EXPECT_EQ(Misfit({{EmbeddingLayer{.count = 9, .width = 4, .padding = 9}}}, {6}).message,
            "embedding1: padding 9 is no index below 9");
  EXPECT_EQ(Misfit({{words}, {Conv1dLayer{.out_channels = 2}}}, {6}).message,
            "conv1d1: mixes positions with padding: leave out the embedding's `padding`");
  EXPECT_EQ(Misfit({{ToSequenceLayer{.width = 3}}, {Conv1dLayer{.out_channels = 2}}}, {6}).message,
            "conv1d1: a window of 3 with padding 0 does not fit inputs [2, 3]");
  EXPECT_EQ(Misfit({{words}, {ConcatLayer{{{ReluLayer{}}}}}}, {6}).message,
            "concat1: takes images and flat inputs, gets [6, 4]");
  EXPECT_THAT(Misfit({{words}, {BatchNormLayer{}}}, {6}).message, HasSubstr("bn1: needs inputs [channels"));
  EXPECT_EQ(Misfit({{words}, {LinearLayer{}}}, {6}).message,
            "fc1: the last layer gives [6, 10], the likelihood takes [10]");
}

TEST(NetworkShape, RefusesExtentsThatWouldOverflow) {
  const ConvLayer wide{.out_channels = 65536, .kernel = 1, .padding = 64};
  EXPECT_THAT(Misfit({{wide}, {wide}}, {1, 200, 200}).message, HasSubstr("computes too many values to give ["));
}

TEST(LayerSpec, BoundsDepthAndCountAreChecked) {
  EXPECT_EQ(Misfit({{ResidualLayer{{{ReluLayer()}, {DropoutLayer{.rate = 1}}}, {}}}}, {5}).path,
            "model.layers[0].residual.branch[1].dropout.rate");
  EXPECT_EQ(Misfit({{ConvLayer{}}}, {1, 5, 5}).path, "model.layers[0].conv.out_channels");
  EXPECT_EQ(Misfit({{ConcatLayer{}}}, {5}).path, "model.layers[0].concat.branch");
  EXPECT_EQ(Misfit({}, {5}).path, "model.layers");
  LayerList deep = {{ReluLayer()}};
  for (int i = 0; i < limits::kMaxLayerDepth; ++i) deep = {{ResidualLayer{deep, {}}}};
  EXPECT_THAT(Misfit(deep, {5}).message, HasSubstr("at most 8 deep"));
  EXPECT_THAT(Misfit(LayerList(limits::kMaxLayers + 1, {ReluLayer()}), {5}).message, HasSubstr("the most is 4096"));
}

struct Published {
  BuiltinModel model;
  std::vector<int64_t> input_shape;
  int64_t classes;
  int64_t parameters;
};

// Parameter counts of other implementations of the network; without a source, the sum over its layers by hand.
TEST(BuiltinNetworks, HaveTheirPublishedNumbersOfParameters) {
  const std::vector<int64_t> cifar = {3, 32, 32}, imagenet = {3, 224, 224};
  const std::vector<Published> all = {
      {{"cnn5", {}}, {1, 28, 28}, 10, 320 + 18496 + 73856 + 6272 * 128 + 128 + 1290},
      {{"resnet18", {}}, cifar, 10, 11'173'962},
      {{"resnet18", {}, 1, Stem::kImagenet}, imagenet, 1000, 11'689'512},
      {{"resnet50", {}}, cifar, 10, 23'520'842},
      {{"resnet50", {}, 1, Stem::kImagenet}, imagenet, 1000, 25'557'032},
      {{"resnet20-frn", {}}, cifar, 10, 270'256 + 1'920 + 650},  // convolutions, norms, linear
      {{"preresnet164", {}}, cifar, 10, 1'703'258},
      {{"wideresnet28x10", {}}, cifar, 10, 36'489'290},
      {{"vgg16", {}}, cifar, 10, 15'245'130},
      {{"vgg16-bn", {}}, cifar, 10, 15'245'130 + 2 * 4224},
      {{"vgg16", {}, 1, Stem::kImagenet}, imagenet, 1000, 138'357'544},
      {{"densenet161", {}}, cifar, 10, 26'482'378},
      {{"densenet161", {}, 1, Stem::kImagenet}, imagenet, 1000, 28'681'000},
      {{"vit-tiny", {}, 1, Stem::kImagenet}, imagenet, 1000, 5'717'416 - 2 * 192},  // without a class token
      {{"vit-tiny", {}}, cifar, 10, 9'408 + 64 * 192 + 12 * 444'864 + 384 + 1'930},
      {{.name = "text-transformer", .vocabulary = 1000}, {20}, 2, 128'000 + 2'560 + 4 * 198'272 + 256 + 258},
  };
  for (const Published& net : all) {
    const auto network = InferNetwork({net.model}, net.input_shape, net.classes);
    ASSERT_TRUE(network.ok()) << net.model.name << ": " << network.status();
    EXPECT_EQ(NumParameters(network->parameters), net.parameters) << net.model.name;
  }
}

TEST(BuiltinNetworks, EveryOneFitsCifarAtAnyWidthAndStem) {
  for (const std::string name : {"softmax_regression", "mlp", "lenet5", "cnn5", "resnet18", "resnet20-frn", "resnet50",
                                 "preresnet164", "wideresnet28x10", "vgg16", "vgg16-bn", "densenet161", "vit-tiny"}) {
    SCOPED_TRACE(name);
    const auto full = InferNetwork({BuiltinModel{name, {}}}, {3, 32, 32}, 10);
    const auto narrow = InferNetwork({BuiltinModel{name, {}, 0.125}}, {3, 32, 32}, 10);
    ASSERT_TRUE(full.ok() && narrow.ok()) << full.status() << narrow.status();
    EXPECT_LE(NumParameters(narrow->parameters), NumParameters(full->parameters));
    EXPECT_EQ(HasBatchNorm({BuiltinModel{name, {}}}), !full->statistics.empty());
    const BuiltinModel stem{name, {}, 0.125, Stem::kImagenet};
    if (Validate(stem).empty()) {
      EXPECT_TRUE(InferNetwork({stem}, {3, 64, 64}, 10).ok());
    } else {
      EXPECT_EQ(Validate(stem)[0].path, "model.stem");
    }
  }
  EXPECT_EQ(Validate(BuiltinModel{"resnet18", {}, 0})[0].path, "model.width");
  EXPECT_EQ(Validate(BuiltinModel{"text-transformer", {}})[0].path, "model.vocabulary");
  EXPECT_EQ(Validate(BuiltinModel{.name = "vit-tiny", .vocabulary = 5})[0].path, "model.vocabulary");
}

TEST(BuiltinNetworks, AMisfitIsReportedAtTheBuiltin) {
  const absl::Status status = InferNetwork({BuiltinModel{"vgg16", {}}}, {1, 28, 28}, 10).status();
  ASSERT_EQ(FieldViolationsOf(status).size(), 1u);
  EXPECT_EQ(FieldViolationsOf(status)[0].path, "model.builtin");
  EXPECT_EQ(FieldViolationsOf(status)[0].message,
            "vgg16 does not fit inputs [1, 28, 28]: max_pool5: a window of 2 by 2 with padding 0 does not fit inputs "
            "[512, 1, 1]");
}

TEST(JobSpec, FullDataKernelsRefuseBatchNorm) {
  JobSpec spec;
  spec.name = "job";
  spec.dataset = "cifar";
  spec.schedule.kind = ConstantSchedule{0.1};
  spec.num_epochs = 1;
  spec.model.kind = BuiltinModel{"resnet18", {}};
  EXPECT_TRUE(Validate(spec).empty());
  spec.sampler.kind = MalaSpec{};
  const auto violations = Validate(spec);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "sampler.mala");
  EXPECT_THAT(violations[0].message, HasSubstr("batch norm"));
  spec.model.kind = BuiltinModel{"resnet20-frn", {}};
  EXPECT_TRUE(Validate(spec).empty());
}

}  // namespace
}  // namespace chainfleet
