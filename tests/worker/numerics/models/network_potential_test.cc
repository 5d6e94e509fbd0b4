#include "worker/numerics/models/network_potential.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/targets.h"
#include "tests/support/network_fixture.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

struct Evaluation {
  std::vector<double> energy;
  std::vector<std::vector<float>> gradient;
  bool operator==(const Evaluation&) const = default;
};

Evaluation Evaluate(Potential* potential, const ThetaArena& theta, const std::vector<int64_t>& ids) {
  ThetaArena gradient = theta.Clone();
  Evaluation result{std::vector<double>(theta.rows()), {}};
  potential->Evaluate(theta, {ids.data(), static_cast<int64_t>(ids.size()) / theta.rows()}, &gradient,
                      result.energy.data());
  for (int64_t r = 0; r < theta.rows(); ++r) result.gradient.push_back(gradient.ReadRow(r));
  return result;
}

class EveryNetwork : public ::testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { at::set_num_threads(1); }
  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(300);
  const std::unique_ptr<Potential> potential_ = MakeNetwork(GetParam(), data_);
};

// Energies and gradients of five chains: together on one thread and on two, and each alone.
void ExpectBitsOfTheirOwn(Potential* potential, int64_t batch, int64_t num_examples) {
  constexpr int64_t kChains = 5;
  const ThetaArena theta = RandomTheta(potential->layout(), kChains);
  const std::vector<int64_t> ids = SomeIds(kChains, batch, num_examples);
  at::set_num_threads(1);
  const Evaluation together = Evaluate(potential, theta, ids);
  at::set_num_threads(2);  // four chains side by side, the fifth shared out
  EXPECT_TRUE(Evaluate(potential, theta, ids) == together);
  for (int64_t r = 0; r < kChains; ++r) {
    ThetaArena alone(potential->layout(), Device());
    alone.AddRow();
    alone.WriteRow(0, theta.ReadRow(r));
    const Evaluation single = Evaluate(potential, alone, {ids.begin() + r * batch, ids.begin() + (r + 1) * batch});
    EXPECT_EQ(single.energy[0], together.energy[r]);
    EXPECT_TRUE(single.gradient[0] == together.gradient[r]) << "chain " << r;
  }
}

TEST_P(EveryNetwork, BitsOfAChainDependOnNoOtherChain) { ExpectBitsOfTheirOwn(potential_.get(), 100, 300); }

// The networks that run on LibTorch's operations, narrow.
class LibraryNetwork : public ::testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { at::set_num_threads(1); }
};

TEST_P(LibraryNetwork, BitsOfAChainDependOnNoOtherChain) {
  const auto potential = MakeNetwork(GetParam(), SyntheticImages(60, {3, 32, 32}), 25, 0.0625);
  ExpectBitsOfTheirOwn(potential.get(), 7, 60);
}

INSTANTIATE_TEST_SUITE_P(Networks, LibraryNetwork,
                         ::testing::Values("cnn5", "resnet18", "resnet20-frn", "resnet50", "preresnet164",
                                           "wideresnet28x10", "vgg16", "vgg16-bn", "densenet161"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(EveryNetwork, GradientIsTheSlopeOfTheEnergy) {
  const ThetaArena theta = RandomTheta(potential_->layout(), 1);
  const std::vector<int64_t> ids = SomeIds(1, 64, 300);
  const std::vector<float> start = theta.ReadRow(0);
  std::vector<float> slope = Evaluate(potential_.get(), theta, ids).gradient[0];
  double norm2 = 0;
  for (size_t i = 0; i < slope.size(); ++i) {
    slope[i] += static_cast<float>(potential_->prior_precision()) * start[i];
    norm2 += static_cast<double>(slope[i]) * slope[i];
  }
  const double step = 2e-3;  // along the unit gradient
  double energy[2];
  for (const int side : {0, 1}) {
    ThetaArena moved = theta.Clone();
    std::vector<float> values = start;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<float>((side == 0 ? step : -step) * slope[i] / std::sqrt(norm2));
    }
    moved.WriteRow(0, values);
    energy[side] = Evaluate(potential_.get(), moved, ids).energy[0];
  }
  EXPECT_NEAR((energy[0] - energy[1]) / (2 * step), std::sqrt(norm2), 0.01 * std::sqrt(norm2));
}

TEST_P(EveryNetwork, EnergyIsPriorPlusScaledLosses) {
  const ThetaArena theta = RandomTheta(potential_->layout(), 2);
  const std::vector<int64_t> ids = SomeIds(2, 30, 300);
  std::vector<double> losses(60), log_prior(2);
  potential_->Losses(theta, {ids.data(), 30}, losses.data());
  potential_->LogPrior(theta, nullptr, log_prior.data());
  const Evaluation evaluation = Evaluate(potential_.get(), theta, ids);
  for (int r = 0; r < 2; ++r) {
    double sum = 0;
    for (int i = 0; i < 30; ++i) sum += losses[r * 30 + i];
    EXPECT_DOUBLE_EQ(evaluation.energy[r], -log_prior[r] + 300.0 / 30 * sum);
  }
}

TEST_P(EveryNetwork, ANonFiniteChainAffectsNoOther) {
  ThetaArena theta = RandomTheta(potential_->layout(), 3);
  const std::vector<int64_t> ids = SomeIds(3, 32, 300);
  const Evaluation healthy = Evaluate(potential_.get(), theta, ids);
  std::vector<float> broken = theta.ReadRow(1);
  for (float& value : broken) value = std::numeric_limits<float>::quiet_NaN();
  theta.WriteRow(1, broken);
  const Evaluation evaluation = Evaluate(potential_.get(), theta, ids);
  EXPECT_FALSE(std::isfinite(evaluation.energy[1]));
  for (const int r : {0, 2}) {
    EXPECT_EQ(evaluation.energy[r], healthy.energy[r]);
    EXPECT_TRUE(evaluation.gradient[r] == healthy.gradient[r]);
  }
  EXPECT_TRUE(Evaluate(potential_.get(), RandomTheta(potential_->layout(), 3), ids) == healthy)
      << "NaN left in buffers";
}

TEST_P(EveryNetwork, GradientsAreTheSameOnAHostWithNarrowerVectors) {
  const ThetaArena theta = RandomTheta(potential_->layout(), 1);
  const std::vector<int64_t> ids = SomeIds(1, 50, 300);
  const Evaluation widest = Evaluate(potential_.get(), theta, ids);
  hwy::SetSupportedTargetsForTest(hwy::SupportedTargets() & -HWY_AVX2);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  const Evaluation narrow = Evaluate(potential_.get(), theta, ids);
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  EXPECT_EQ(narrow.energy, widest.energy);
  EXPECT_TRUE(narrow.gradient == widest.gradient);
}

TEST_P(EveryNetwork, NormsOfExamplesMatchBatchesOfOne) {
  constexpr int64_t kImages = 21;  // two groups of lanes, the second cut
  const ThetaArena theta = RandomTheta(potential_->layout(), 3);
  const std::vector<int64_t> ids = SomeIds(3, kImages, potential_->num_examples());
  ThetaArena gradient = theta.Clone(), plain = theta.Clone();
  std::vector<double> energy(3), norms(3 * kImages);
  ASSERT_TRUE(potential_->EvaluateWithNorms(theta, {ids.data(), kImages}, &gradient, energy.data(), norms.data()));
  potential_->Evaluate(theta, {ids.data(), kImages}, &plain, energy.data());
  for (int64_t row = 0; row < 3; ++row) {
    const std::vector<float> with = gradient.ReadRow(row), without = plain.ReadRow(row);
    double error = 0, size = 0;
    for (size_t p = 0; p < with.size(); ++p) {
      error += std::pow(with[p] - without[p], 2);
      size += std::pow(without[p], 2);
    }
    EXPECT_LT(error, 1e-10 * size);
  }
  const auto n = static_cast<double>(potential_->num_examples());
  for (int64_t i = 0; i < kImages; ++i) {
    const int64_t one[] = {ids[i], ids[kImages + i], ids[2 * kImages + i]};
    potential_->Evaluate(theta, {one, 1}, &plain, energy.data());
    for (int64_t row = 0; row < 3; ++row) {
      double norm = 0;
      for (const float g : plain.ReadRow(row)) norm += std::pow(g / n, 2);
      EXPECT_NEAR(norms[row * kImages + i], norm, 1e-4 * norm) << row << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EveryNetwork, ::testing::Values("softmax_regression", "mlp", "lenet5"),
                         [](const auto& info) { return info.param; });

TEST(NetworkPotential, NeedsADataSet) {
  JobPlan plan;
  plan.job = "lost-aaaaaa";
  plan.spec.model.kind = BuiltinModel{"mlp", {}};
  const auto potential = MakeNetworkPotential(plan, nullptr, Device());
  EXPECT_EQ(potential.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(potential.status().message()), HasSubstr("lost-aaaaaa"));
}

TEST(NetworkPotential, RefusesImagesThatDoNotFitTheModel) {
  const auto data = SyntheticImages(20, {30}, 3);
  JobPlan plan;
  plan.spec.model.kind = BuiltinModel{"lenet5", {}};
  const auto potential = MakeNetworkPotential(plan, data, Device());
  EXPECT_EQ(potential.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(potential.status().message()), HasSubstr("[30]"));
}

}  // namespace
}  // namespace chainfleet
