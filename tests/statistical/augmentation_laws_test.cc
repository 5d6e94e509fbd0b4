// Offsets and mirrors of augmentation: uniform, and independent over images, steps and chains; losses and gradients of
// augmented batches: in the mean those over all that may become of each image.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/support/network_fixture.h"
#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/kernels/augment.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

constexpr AugmentationSpec kCifar = {.crop_padding = 4, .flip = true};
constexpr int64_t kOffsets = 9, kCells = 2 * kOffsets * kOffsets;
constexpr int64_t kImages = 648'000;  // 4,000 expected in a cell

int64_t CellOf(const ImageChange& change) {
  EXPECT_LE(std::max(std::abs(change.down), std::abs(change.right)), 4);
  return ((change.down + 4) * kOffsets + change.right + 4) * 2 + change.mirror;
}

// The chi-square statistic of counts whose expectations are equal; its mean is their number minus one.
double ChiSquare(const std::vector<int64_t>& counts) {
  double all = 0, sum = 0;
  for (const int64_t count : counts) all += static_cast<double>(count);
  const double expected = all / static_cast<double>(counts.size());
  for (const int64_t count : counts) sum += std::pow(static_cast<double>(count) - expected, 2) / expected;
  return sum;
}

void ExpectUniform(const std::vector<int64_t>& counts) {
  const auto freedom = static_cast<double>(counts.size() - 1);
  EXPECT_NEAR(ChiSquare(counts), freedom, 4 * std::sqrt(2 * freedom));
}

// `draw(i)` for image i of kImages.
using DrawnChange = std::function<ImageChange(int64_t i)>;

TEST(AugmentationLaws, OffsetsAndMirrorsAreJointlyUniform) {
  const DrawnChange draws[] = {
      [](int64_t i) { return DrawImageChange(kCifar, RngKey{1}, 3, static_cast<uint32_t>(i)); },
      [](int64_t i) { return DrawImageChange(kCifar, RngKey{1}, static_cast<uint64_t>(i), 3); },
      [](int64_t i) { return DrawImageChange(kCifar, Fold(RngKey{1}, static_cast<uint64_t>(i)), 3, 3); },
  };
  for (const DrawnChange& draw : draws) {
    std::vector<int64_t> counts(kCells);
    for (int64_t i = 0; i < kImages; ++i) ++counts[CellOf(draw(i))];
    ExpectUniform(counts);
  }
}

TEST(AugmentationLaws, NeighboursInBatchStepAndChainAreIndependent) {
  const auto key = [](int64_t chain) { return Fold(RngKey{7}, static_cast<uint64_t>(chain)); };
  const auto at = [&](int64_t chain, int64_t step, int64_t position) {
    return DrawImageChange(kCifar, key(chain), static_cast<uint64_t>(step), static_cast<uint32_t>(position));
  };
  const DrawnChange neighbours[] = {
      [&](int64_t i) { return at(2, i / 128, i % 128 + 1); },
      [&](int64_t i) { return at(2, i / 128 + 1, i % 128); },
      [&](int64_t i) { return at(3, i / 128, i % 128); },
  };
  for (const DrawnChange& neighbour : neighbours) {
    std::vector<int64_t> counts(kOffsets * kOffsets * 4);
    for (int64_t i = 0; i < kImages; ++i) {
      const ImageChange one = at(2, i / 128, i % 128), other = neighbour(i);
      ++counts[((one.down + 4) * kOffsets + other.down + 4) * 4 + one.mirror * 2 + other.mirror];
    }
    ExpectUniform(counts);
  }
}

TEST(AugmentationLaws, CropsOrMirrorsOnlyOnRequest) {
  for (uint32_t i = 0; i < 1000; ++i) {
    const ImageChange crop = DrawImageChange({.crop_padding = 2}, RngKey{1}, 5, i);
    const ImageChange flip = DrawImageChange({.flip = true}, RngKey{1}, 5, i);
    EXPECT_FALSE(crop.mirror);
    EXPECT_TRUE(flip.down == 0 && flip.right == 0);
  }
}

const std::vector<int64_t> kShape = {2, 6, 5};
constexpr AugmentationSpec kSmall = {.crop_padding = 1, .flip = true};
constexpr int64_t kStored = 24, kOutcomes = 3 * 3 * 2, kRows = 16, kRounds = 1500;

// Every image in each of its equally likely outcomes.
std::shared_ptr<const ResidentDataset> AllOutcomes(const ResidentDataset& data) {
  const Dataset& dataset = data.description();
  const InputRows rows(dataset.input_type, data.input_bytes().data(), kShape, dataset.normalisation);
  std::vector<float> inputs, stored(rows.row_size()), changed(rows.row_size());
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < kStored; ++i) {
    rows.Read(i, stored.data());
    for (int32_t outcome = 0; outcome < kOutcomes; ++outcome) {
      const ImageChange change = {outcome % 3 - 1, outcome / 3 % 3 - 1, outcome >= 9};
      ChangeImage(kShape[0], kShape[1], kShape[2], change, stored.data(), changed.data());
      inputs.insert(inputs.end(), changed.begin(), changed.end());
      labels.push_back(std::get<std::vector<int32_t>>(data.targets())[i]);
    }
  }
  return ImagesLike(dataset, inputs, labels);
}

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

void ExpectMean(const std::vector<double>& seen, double expected) {
  double sum = 0, squares = 0;
  for (const double value : seen) sum += value, squares += value * value;
  const auto count = static_cast<double>(seen.size());
  const double mean = sum / count, error = std::sqrt((squares / count - mean * mean) / count);
  EXPECT_LT(error, 0.004 * std::abs(expected));
  EXPECT_NEAR(mean, expected, 4 * error);
}

using Make =
    std::function<std::unique_ptr<Potential>(const std::shared_ptr<const ResidentDataset>&, const AugmentationSpec&)>;

// At one theta, the gradient seen along its exact mean.
void ExpectUnbiased(const Make& make) {
  const auto data = SyntheticImages(kStored, kShape, 3);
  std::vector<int64_t> ids(kStored * kOutcomes);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  const auto exact = make(AllOutcomes(*data), {}), augmented = make(data, kSmall);
  const ThetaArena one = RandomTheta(exact->layout(), 1);
  ThetaArena gradient = one.Clone();
  double energy = 0;
  exact->Evaluate(one, {ids.data(), kStored * kOutcomes}, &gradient, &energy);
  const std::vector<float> mean = gradient.ReadRow(0);

  ThetaArena theta = one.Clone();
  while (theta.rows() < kRows) theta.AddRow();
  for (int64_t row = 0; row < kRows; ++row) theta.WriteRow(row, one.ReadRow(0));
  ThetaArena gradients = theta.Clone();
  std::vector<int64_t> batch;
  for (int64_t row = 0; row < kRows; ++row) batch.insert(batch.end(), ids.begin(), ids.begin() + kStored);
  std::vector<double> energies, along, some(kRows);
  for (uint64_t round = 0; round < kRounds; ++round) {
    std::vector<StepKey> keys;
    for (uint64_t row = 0; row < kRows; ++row) keys.push_back({Fold(RngKey{3}, row), round});
    augmented->Evaluate(theta, {batch.data(), kStored, keys.data()}, &gradients, some.data());
    energies.insert(energies.end(), some.begin(), some.end());
    for (int64_t row = 0; row < kRows; ++row) along.push_back(Dot(gradients.ReadRow(row), mean));
  }
  ExpectMean(energies, energy / kOutcomes);
  ExpectMean(along, Dot(mean, mean) / kOutcomes);
}

TEST(AugmentationLaws, FusedNetworksAreUnbiasedOverAllOutcomes) {
  ExpectUnbiased([](const auto& data, const AugmentationSpec& augmentation) {
    JobPlan plan;
    plan.spec.model.kind = BuiltinModel{"mlp", {8}};
    plan.spec.augmentation = augmentation;
    plan.dataset = data->description();
    plan.normalisation = data->description().normalisation;
    return *MakeNetworkPotential(plan, data, Device());
  });
}

TEST(AugmentationLaws, EagerNetworksAreUnbiasedOverAllOutcomes) {
  const LayerList layers = {{ConvLayer{.out_channels = 3}}, {ReluLayer{}}, {LinearLayer{}}};
  const NetworkShape network = *InferNetwork(layers, kShape, 3, "layers");
  const auto layout = std::make_shared<const Layout>(network.parameters);
  ExpectUnbiased([&](const auto& data, const AugmentationSpec& augmentation) {
    return MakeEagerPotential(network, layout, data, {data->description().normalisation, augmentation, 0}, Device(),
                              ChainBatching::kTogether);
  });
}

}  // namespace
}  // namespace chainfleet
