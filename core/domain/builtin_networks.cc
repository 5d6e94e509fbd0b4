#include "core/domain/builtin_networks.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

void Append(LayerList* layers, std::initializer_list<LayerKind> kinds) {
  for (const LayerKind& kind : kinds) layers->push_back({kind});
}

void Append(LayerList* layers, const LayerList& more) { layers->insert(layers->end(), more.begin(), more.end()); }

// The parts of the networks below, at the model's width.
class Parts {
 public:
  explicit Parts(const BuiltinModel& model) : width_(model.width), imagenet_(model.stem == Stem::kImagenet) {}

  bool imagenet() const { return imagenet_; }
  int64_t Scaled(int64_t extent) const {
    return std::max<int64_t>(1, std::llround(static_cast<double>(extent) * width_));
  }
  LinearLayer Linear(int64_t outputs) const { return {Scaled(outputs)}; }
  ConvLayer Conv(int64_t channels, int64_t kernel, int64_t stride = 1, bool bias = false) const {
    return {Scaled(channels), kernel, stride, kernel / 2, 1, bias};
  }
  // Returns the first convolution, with `norm` after it if the ImageNet stem needs a norm before its pool.
  LayerList StemOf(int64_t channels, const LayerList& norm, bool norm_on_cifar) const {
    LayerList layers = {{imagenet_ ? Conv(channels, 7, 2) : Conv(channels, 3)}};
    if (imagenet_ || norm_on_cifar) Append(&layers, norm);
    if (imagenet_) Append(&layers, {MaxPoolLayer{3, 2, 1}});
    return layers;
  }

 private:
  double width_;
  bool imagenet_;
};

const LayerList kNormRelu = {{BatchNormLayer()}, {ReluLayer()}};

LayerList Linear(const BuiltinModel&) { return {{LinearLayer()}}; }

LayerList Mlp(const BuiltinModel& model) {
  const Parts parts(model);
  LayerList layers;
  for (const int64_t hidden : model.hidden.empty() ? std::vector<int64_t>{200, 200} : model.hidden) {
    Append(&layers, {parts.Linear(hidden), ReluLayer()});
  }
  Append(&layers, {LinearLayer()});
  return layers;
}

// LeCun et al., "Gradient-based learning applied to document recognition", 1998, with ReLU and max pooling.
LayerList Lenet5(const BuiltinModel& model) {
  const Parts parts(model);
  const ConvLayer second{.out_channels = parts.Scaled(16), .kernel = 5};
  LayerList layers;
  Append(&layers, {parts.Conv(6, 5, 1, true), ReluLayer(), MaxPoolLayer(), second, ReluLayer(), MaxPoolLayer()});
  Append(&layers, {FlattenLayer(), parts.Linear(120), ReluLayer(), parts.Linear(84), ReluLayer(), LinearLayer()});
  return layers;
}

LayerList Cnn5(const BuiltinModel& model) {
  const Parts parts(model);
  LayerList layers;
  for (const int64_t channels : {32, 64}) {
    Append(&layers, {parts.Conv(channels, 3, 1, true), ReluLayer(), MaxPoolLayer()});
  }
  Append(&layers, {parts.Conv(128, 3, 1, true), ReluLayer(), FlattenLayer()});
  Append(&layers, {parts.Linear(128), ReluLayer(), LinearLayer()});
  return layers;
}

// He et al., CVPR 2016. `bottleneck`: 1x1, 3x3, 1x1 to four times the channels.
LayerList Resnet(const BuiltinModel& model, std::initializer_list<int> blocks, bool bottleneck) {
  const Parts parts(model);
  LayerList layers = parts.StemOf(64, kNormRelu, true);
  const int64_t expansion = bottleneck ? 4 : 1;
  int64_t channels = 64, inputs = 64;
  for (const int count : blocks) {
    for (int b = 0; b < count; ++b) {
      const int64_t stride = b == 0 && channels > 64 ? 2 : 1, outputs = expansion * channels;
      ResidualLayer block;
      if (bottleneck) {
        Append(&block.branch,
               {parts.Conv(channels, 1), BatchNormLayer(), ReluLayer(), parts.Conv(channels, 3, stride)});
      } else {
        Append(&block.branch, {parts.Conv(channels, 3, stride)});
      }
      Append(&block.branch, kNormRelu);
      Append(&block.branch, {parts.Conv(outputs, bottleneck ? 1 : 3), BatchNormLayer()});
      if (stride != 1 || inputs != outputs) {
        Append(&block.shortcut, {parts.Conv(outputs, 1, stride), BatchNormLayer()});
      }
      Append(&layers, {block, ReluLayer()});
      inputs = outputs;
    }
    channels *= 2;
  }
  Append(&layers, {GlobalAvgPoolLayer(), LinearLayer()});
  return layers;
}

LayerList Resnet18(const BuiltinModel& model) { return Resnet(model, {2, 2, 2, 2}, false); }
LayerList Resnet50(const BuiltinModel& model) { return Resnet(model, {3, 4, 6, 3}, true); }

// The twenty-layer residual network with filter response norm of Izmailov et al., "What are Bayesian neural network
// posteriors really like?", ICML 2021. The thresholds of the norm are the activations.
LayerList Resnet20Frn(const BuiltinModel& model) {
  const Parts parts(model);
  const FrnLayer linear{.threshold = false};
  LayerList layers = parts.StemOf(16, {{FrnLayer()}}, true);
  int64_t inputs = 16;
  for (const int64_t channels : {16, 32, 64}) {
    for (int b = 0; b < 3; ++b) {
      const int64_t stride = b == 0 && channels > 16 ? 2 : 1;
      ResidualLayer block;
      Append(&block.branch, {parts.Conv(channels, 3, stride), FrnLayer(), parts.Conv(channels, 3), linear});
      if (inputs != channels) Append(&block.shortcut, {parts.Conv(channels, 1, stride), linear});
      Append(&layers, {block, ReluLayer()});
      inputs = channels;
    }
  }
  Append(&layers, {GlobalAvgPoolLayer(), LinearLayer()});
  return layers;
}

// He et al., "Identity mappings in deep residual networks", ECCV 2016; bottlenecks as in the SWAG experiments.
LayerList Preresnet164(const BuiltinModel& model) {
  const Parts parts(model);
  LayerList layers = parts.StemOf(16, kNormRelu, false);
  for (const int64_t channels : {16, 32, 64}) {
    for (int b = 0; b < 18; ++b) {
      const int64_t stride = b == 0 && channels > 16 ? 2 : 1;
      ResidualLayer block{.branch = kNormRelu, .shortcut = {}};
      Append(&block.branch, {parts.Conv(channels, 1), BatchNormLayer(), ReluLayer(), parts.Conv(channels, 3, stride)});
      Append(&block.branch, kNormRelu);
      Append(&block.branch, {parts.Conv(4 * channels, 1)});
      if (b == 0) Append(&block.shortcut, {parts.Conv(4 * channels, 1, stride)});
      Append(&layers, {block});
    }
  }
  Append(&layers, kNormRelu);
  Append(&layers, {GlobalAvgPoolLayer(), LinearLayer()});
  return layers;
}

// Zagoruyko & Komodakis, BMVC 2016; convolutions with bias as in the SWAG experiments.
LayerList Wideresnet28x10(const BuiltinModel& model) {
  const Parts parts(model);
  LayerList layers = {{parts.imagenet() ? parts.Conv(16, 7, 2, true) : parts.Conv(16, 3, 1, true)}};
  if (parts.imagenet()) Append(&layers, {BatchNormLayer(), ReluLayer(), MaxPoolLayer{3, 2, 1}});
  for (const int64_t channels : {160, 320, 640}) {
    for (int b = 0; b < 4; ++b) {
      const int64_t stride = b == 0 && channels > 160 ? 2 : 1;
      ResidualLayer block{.branch = kNormRelu, .shortcut = {}};
      Append(&block.branch, {parts.Conv(channels, 3, 1, true)});
      Append(&block.branch, kNormRelu);
      Append(&block.branch, {parts.Conv(channels, 3, stride, true)});
      if (b == 0) Append(&block.shortcut, {parts.Conv(channels, 1, stride, true)});
      Append(&layers, {block});
    }
  }
  Append(&layers, kNormRelu);
  Append(&layers, {GlobalAvgPoolLayer(), LinearLayer()});
  return layers;
}

// Simonyan & Zisserman, ICLR 2015, configuration D; for CIFAR with the small head of the SWAG experiments.
LayerList Vgg(const BuiltinModel& model, bool batch_norm) {
  const Parts parts(model);
  LayerList layers;
  for (const auto& [channels, count] : {std::pair{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}) {
    for (int c = 0; c < count; ++c) {
      Append(&layers, {parts.Conv(channels, 3, 1, true)});
      if (batch_norm) Append(&layers, {BatchNormLayer()});
      Append(&layers, {ReluLayer()});
    }
    Append(&layers, {MaxPoolLayer()});
  }
  const int64_t head = parts.imagenet() ? 4096 : 512;
  Append(&layers, {FlattenLayer(), parts.Linear(head), ReluLayer(), parts.Linear(head), ReluLayer(), LinearLayer()});
  return layers;
}

LayerList Vgg16(const BuiltinModel& model) { return Vgg(model, false); }
LayerList Vgg16Bn(const BuiltinModel& model) { return Vgg(model, true); }

// Huang et al., CVPR 2017: growth 48, bottlenecks of 4 x 48, half the channels passed on between blocks.
LayerList Densenet161(const BuiltinModel& model) {
  const Parts parts(model);
  constexpr int64_t kGrowth = 48;
  LayerList layers = parts.StemOf(2 * kGrowth, kNormRelu, false);
  int64_t channels = 2 * kGrowth;
  for (const int count : {6, 12, 36, 24}) {
    if (channels > 2 * kGrowth) {
      channels /= 2;
      Append(&layers, kNormRelu);
      Append(&layers, {parts.Conv(channels, 1), AvgPoolLayer()});
    }
    ConcatLayer block{.branch = kNormRelu};
    Append(&block.branch, {parts.Conv(4 * kGrowth, 1), BatchNormLayer(), ReluLayer(), parts.Conv(kGrowth, 3)});
    for (int b = 0; b < count; ++b) Append(&layers, {block});
    channels += count * kGrowth;
  }
  Append(&layers, kNormRelu);
  Append(&layers, {GlobalAvgPoolLayer(), LinearLayer()});
  return layers;
}

// Transformer blocks with norms before the branches (Xiong et al., ICML 2020), then the mean over the positions.
LayerList Encoder(int64_t blocks, int64_t width, int64_t heads) {
  LayerList layers;
  for (int64_t b = 0; b < blocks; ++b) {
    ResidualLayer attention, dense;
    Append(&attention.branch, {LayerNormLayer(), AttentionLayer{heads}});
    Append(&dense.branch, {LayerNormLayer(), LinearLayer{4 * width}, GeluLayer(), LinearLayer{width}});
    Append(&layers, {attention, dense});
  }
  Append(&layers, {LayerNormLayer(), GlobalAvgPoolLayer(), LinearLayer()});
  return layers;
}

// Dosovitskiy et al., ICLR 2021, in the size of DeiT-Ti (Touvron et al., ICML 2021), without a class token.
LayerList VitTiny(const BuiltinModel& model) {
  constexpr int64_t kBlocks = 12, kHeads = 3;
  const Parts parts(model);
  const int64_t patch = parts.imagenet() ? 16 : 4, width = kHeads * parts.Scaled(64);
  LayerList layers;
  Append(&layers,
         {ConvLayer{.out_channels = width, .kernel = patch, .stride = patch}, ToSequenceLayer(), PositionLayer()});
  Append(&layers, Encoder(kBlocks, width, kHeads));
  return layers;
}

// An encoder (Vaswani et al., NeurIPS 2017) with norms before the branches, gelu and learned positions, for short
// texts.
LayerList TextTransformer(const BuiltinModel& model) {
  constexpr int64_t kBlocks = 4, kHeads = 4;
  const int64_t width = kHeads * Parts(model).Scaled(32);
  LayerList layers;
  Append(&layers, {EmbeddingLayer{model.vocabulary.value_or(1), width, 0}, PositionLayer()});
  Append(&layers, Encoder(kBlocks, width, kHeads));
  return layers;
}

struct Builtin {
  const char* name;
  LayerList (*layers)(const BuiltinModel&);
  bool has_stem;
};

constexpr Builtin kBuiltins[] = {{"softmax_regression", Linear, false},
                                 {"linear", Linear, false},
                                 {"mlp", Mlp, false},
                                 {"lenet5", Lenet5, false},
                                 {"cnn5", Cnn5, false},
                                 {"resnet18", Resnet18, true},
                                 {"resnet20-frn", Resnet20Frn, true},
                                 {"resnet50", Resnet50, true},
                                 {"preresnet164", Preresnet164, true},
                                 {"wideresnet28x10", Wideresnet28x10, true},
                                 {"vgg16", Vgg16, true},
                                 {"vgg16-bn", Vgg16Bn, true},
                                 {"densenet161", Densenet161, true},
                                 {"vit-tiny", VitTiny, true},
                                 {"text-transformer", TextTransformer, false}};

const Builtin* Find(const std::string& name) {
  const auto* found = std::find_if(std::begin(kBuiltins), std::end(kBuiltins),
                                   [&name](const Builtin& builtin) { return name == builtin.name; });
  return found == std::end(kBuiltins) ? nullptr : found;
}

}  // namespace

std::string BuiltinNames() {
  std::string names;
  for (const Builtin& builtin : kBuiltins) absl::StrAppend(&names, names.empty() ? "" : ", ", builtin.name);
  return names;
}

std::vector<FieldViolation> Validate(const BuiltinModel& model) {
  std::vector<FieldViolation> violations;
  const Builtin* builtin = Find(model.name);
  if (builtin == nullptr) {
    violations.push_back(
        {"model.builtin", absl::StrCat("unknown model \"", model.name, "\"; allowed: ", BuiltinNames())});
  }
  if (!model.hidden.empty() && model.name != "mlp") {
    violations.push_back({"model.hidden", absl::StrCat("is for mlp only, the model is ", model.name)});
  }
  if (static_cast<int64_t>(model.hidden.size()) >= limits::kMaxLayers / 2) {  // each adds a linear layer and a ReLU
    violations.push_back({"model.hidden", absl::StrCat("must name fewer than ", limits::kMaxLayers / 2,
                                                       " hidden layers, names ", model.hidden.size())});
  }
  if (builtin != nullptr && !builtin->has_stem && model.stem != Stem::kCifar) {
    violations.push_back({"model.stem", absl::StrCat(model.name, " has one stem only: leave it out")});
  }
  if (model.vocabulary.has_value() != (model.name == "text-transformer")) {
    violations.push_back(
        {"model.vocabulary", absl::StrCat("text-transformer needs it, and only that; the model is ", model.name)});
  }
  CheckBounds(model, "model", &violations);
  return violations;
}

LayerList BuiltinLayers(const BuiltinModel& model) { return Find(model.name)->layers(model); }

}  // namespace chainfleet
