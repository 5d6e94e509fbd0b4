// Augmented batches against a loop over pixels, bit for bit, in both ways a network runs.
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tests/support/network_fixture.h"
#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/models/augmented_images.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

constexpr AugmentationSpec kAugmentation = {.crop_padding = 3, .flip = true};

// Zeros around the image, a window of its size, a mirror.
std::vector<float> Changed(const std::vector<int64_t>& shape, const ImageChange& change, const float* in) {
  const int64_t channels = shape[0], height = shape[1], width = shape[2];
  std::vector<float> out;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      std::vector<float> line;
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from_y = y + change.down, from_x = x + change.right;
        const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
        line.push_back(inside ? in[(c * height + from_y) * width + from_x] : 0);
      }
      if (change.mirror) std::reverse(line.begin(), line.end());
      out.insert(out.end(), line.begin(), line.end());
    }
  }
  return out;
}

TEST(ChangeImage, DoesWhatALoopOverPixelsDoesAndOnTensorsToo) {
  const std::vector<int64_t> shape = {2, 7, 5};
  std::vector<float> image(70);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i + 1);
  image[33] = std::numeric_limits<float>::infinity();
  std::vector<ImageChange> changes;
  for (int down = -7; down <= 7; ++down) {
    for (int right = -5; right <= 5; ++right) {
      for (const bool mirror : {false, true}) changes.push_back({down, right, mirror});
    }
  }
  const auto count = static_cast<int64_t>(changes.size());
  const at::Tensor images = at::from_blob(image.data(), {1, 2, 7, 5}, at::kFloat).expand({count, 2, 7, 5});
  const at::Tensor tensors = AugmentedImages(images, changes).contiguous();
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<float> expected = Changed(shape, changes[i], image.data());
    std::vector<float> out(70, -1.0f);
    ChangeImage(2, 7, 5, changes[i], image.data(), out.data());
    EXPECT_EQ(out, expected) << changes[i].down << " " << changes[i].right << " " << changes[i].mirror;
    const float* of_tensor = tensors.const_data_ptr<float>() + i * 70;
    EXPECT_EQ(std::vector<float>(of_tensor, of_tensor + 70), expected) << i;
  }
}

constexpr int64_t kChains = 3, kBatch = 100, kExamples = kChains * kBatch;
const std::vector<int64_t> kShape = {2, 15, 18};

// x / 64 - 2 of a byte x: no rounding, in whatever order it is computed.
const Normalisation kExact = {{128.0 / 255}, {64.0 / 255}};
Normalisation NormalisationOf(const ResidentDataset& data) {
  return data.description().input_type == InputType::kUint8 ? kExact : Normalisation{};
}

std::vector<StepKey> Keys() {
  std::vector<StepKey> keys;
  for (uint64_t c = 0; c < kChains; ++c) keys.push_back({Fold(RngKey{4}, c), 40 + c});
  return keys;
}

// The image that each position of each chain's batch is to see, in that order, with its label.
std::shared_ptr<const ResidentDataset> ChangedBefore(const ResidentDataset& data, const std::vector<int64_t>& ids) {
  const Dataset& dataset = data.description();
  const InputRows rows(dataset.input_type, data.input_bytes().data(), kShape, kExact);
  std::vector<float> inputs, image(rows.row_size());
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < kExamples; ++i) {
    rows.Read(ids[i], image.data());
    const StepKey step = Keys()[i / kBatch];
    const ImageChange change = DrawImageChange(kAugmentation, step.key, step.step, static_cast<uint32_t>(i % kBatch));
    const std::vector<float> changed = Changed(kShape, change, image.data());
    inputs.insert(inputs.end(), changed.begin(), changed.end());
    labels.push_back(std::get<std::vector<int32_t>>(data.targets())[ids[i]]);
  }
  return ImagesLike(dataset, inputs, labels);
}

using Make =
    std::function<std::unique_ptr<Potential>(const std::shared_ptr<const ResidentDataset>&, const AugmentationSpec&)>;

struct Outcome {
  std::vector<double> energy = std::vector<double>(kChains), losses = std::vector<double>(kExamples);
  std::vector<double> norms = std::vector<double>(kExamples);  // zeros of networks with batch norm
  std::vector<std::vector<float>> gradient;
  bool operator==(const Outcome&) const = default;
};

Outcome Evaluate(Potential& potential, const BatchRows& batch) {
  const ThetaArena theta = RandomTheta(potential.layout(), kChains);
  ThetaArena gradient = theta.Clone();
  Outcome outcome;
  potential.Evaluate(theta, batch, &gradient, outcome.energy.data());
  potential.Losses(theta, batch, outcome.losses.data());
  ThetaArena again = theta.Clone();
  std::vector<double> energy(kChains);
  potential.EvaluateWithNorms(theta, batch, &again, energy.data(), outcome.norms.data());
  for (int64_t c = 0; c < kChains; ++c) outcome.gradient.push_back(gradient.ReadRow(c));
  return outcome;
}

void ExpectBatchesOfChangedImages(const Make& make) {
  const auto data = SyntheticImages(kExamples, kShape, 4);
  const std::vector<int64_t> ids = SomeIds(kChains, kBatch, kExamples);
  std::vector<int64_t> in_order(kExamples);
  for (int64_t i = 0; i < kExamples; ++i) in_order[i] = i;
  const std::vector<StepKey> keys = Keys();
  const auto augmented = make(data, kAugmentation), plain = make(data, {}),
             before = make(ChangedBefore(*data, ids), {});
  const Outcome seen = Evaluate(*augmented, {ids.data(), kBatch, keys.data()});
  EXPECT_TRUE(seen == Evaluate(*before, {in_order.data(), kBatch, keys.data()}));
  // Without keys, as full passes and Metropolis kernels go: the stored images.
  const Outcome unchanged = Evaluate(*augmented, {ids.data(), kBatch});
  EXPECT_TRUE(unchanged == Evaluate(*plain, {ids.data(), kBatch}));
  EXPECT_FALSE(unchanged == seen);
}

TEST(AugmentationParity, FusedNetworksSeeTheChangedImages) {
  for (const char* model : {"mlp", "lenet5"}) {
    SCOPED_TRACE(model);
    ExpectBatchesOfChangedImages([&](const auto& data, const AugmentationSpec& augmentation) {
      JobPlan plan;
      plan.spec.model.kind = BuiltinModel{model, {}};
      plan.spec.augmentation = augmentation;
      plan.dataset = data->description();
      plan.normalisation = NormalisationOf(*data);
      return *MakeNetworkPotential(plan, data, Device());
    });
  }
}

TEST(AugmentationParity, EagerNetworksSeeTheChangedImages) {
  const LayerList layers = {
      {ConvLayer{.out_channels = 3}}, {BatchNormLayer{}}, {ReluLayer{}}, {FlattenLayer{}}, {LinearLayer{}}};
  const NetworkShape network = *InferNetwork(layers, kShape, 4, "layers");
  const auto layout = std::make_shared<const Layout>(network.parameters);
  for (const auto batching : {ChainBatching::kApart, ChainBatching::kTogether}) {
    ExpectBatchesOfChangedImages([&](const auto& data, const AugmentationSpec& augmentation) {
      return MakeEagerPotential(network, layout, data, {NormalisationOf(*data), augmentation, 25}, Device(), batching);
    });
  }
}

TEST(AugmentationParity, StatisticsOfADrawAreThoseOfTheStoredImages) {
  const NetworkShape network = *InferNetwork({{BatchNormLayer{}}, {LinearLayer{}}}, kShape, 4, "layers");
  const auto layout = std::make_shared<const Layout>(network.parameters);
  const auto data = SyntheticImages(kExamples, kShape, 4);
  const auto statistics = [&](const AugmentationSpec& augmentation) {
    const auto potential = MakeEagerPotential(network, layout, data, {NormalisationOf(*data), augmentation, 25},
                                              Device(), ChainBatching::kApart);
    return potential->DrawStatistics(RandomTheta(layout, 1), 0, 1);
  };
  EXPECT_EQ(statistics(kAugmentation), statistics({}));
}

}  // namespace
}  // namespace chainfleet
