// The built-in networks as layer lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/layer_spec.h"

namespace chainfleet {

// The first layers of a convolutional network: one 3x3 convolution, or a 7x7 one with stride 2 and a pool.
enum class Stem { kCifar, kImagenet };
inline std::initializer_list<const char*> EnumNames(Stem) {
  static constexpr std::initializer_list<const char*> kNames = {"cifar", "imagenet"};
  return kNames;
}

// Names: softmax_regression, linear (the same layer, for other likelihoods), mlp, lenet5, cnn5, resnet18, resnet20-frn,
// resnet50, preresnet164, wideresnet28x10, vgg16, vgg16-bn, densenet161, vit-tiny, text-transformer.
struct BuiltinModel {
  std::string name;
  std::vector<int64_t> hidden;  // widths of the hidden layers, mlp only; empty means 200, 200
  double width = 1;             // multiplies the channels or outputs of every hidden layer, rounded, at least 1
  Stem stem = Stem::kCifar;     // resnets, densenet161, vgg16 and vit-tiny only
  std::optional<int64_t> vocabulary = {};  // text-transformer only: number of indices; 0 is the padding
  static void Fields(auto& self, auto&& visit) {
    visit("hidden", self.hidden, kExtentBounds);
    visit("width", self.width, Bounds{.least = 0, .most = 64, .open_least = true});
    visit("stem", self.stem);
    visit("vocabulary", self.vocabulary, kIndexBounds);
  }
  bool operator==(const BuiltinModel&) const = default;
};

// Returns "softmax_regression, mlp, ...".
std::string BuiltinNames();

// Returns violations with paths below "model".
std::vector<FieldViolation> Validate(const BuiltinModel& model);

// Returns the layers of `model`. REQUIRES: `model` has passed Validate.
LayerList BuiltinLayers(const BuiltinModel& model);

}  // namespace chainfleet
