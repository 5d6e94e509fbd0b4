// The N/n of the network potentials, as a law without statistical error: over all batches of n of the N examples the
// mean of Evaluate's gradient is the gradient on all data, and the mean energy is the energy on all data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/support/network_fixture.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

constexpr int64_t kExamples = 6;
constexpr double kPrecision = 3;

std::vector<std::vector<int64_t>> AllBatches(int64_t n) {
  std::vector<std::vector<int64_t>> batches;
  for (uint32_t chosen = 0; chosen < 1u << kExamples; ++chosen) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < kExamples; ++i) {
      if (chosen >> i & 1) ids.push_back(i);
    }
    if (static_cast<int64_t>(ids.size()) == n) batches.push_back(ids);
  }
  return batches;
}

struct Mean {
  std::vector<double> gradient;
  double energy = 0;
};

// Over all batches of n, at one theta.
Mean MeanOverBatches(Potential& potential, int64_t n) {
  const ThetaArena theta = RandomTheta(potential.layout(), 1);
  ThetaArena gradient(potential.layout(), Device());
  gradient.AddRow();
  const auto batches = AllBatches(n);
  const double weight = 1 / static_cast<double>(batches.size());
  Mean mean;
  mean.gradient.resize(potential.layout()->num_parameters());
  for (const auto& ids : batches) {
    double energy = 0;
    potential.Evaluate(theta, {ids.data(), n}, &gradient, &energy);
    mean.energy += weight * energy;
    const std::vector<float> row = gradient.ReadRow(0);
    for (size_t p = 0; p < row.size(); ++p) mean.gradient[p] += weight * row[p];
  }
  return mean;
}

void ExpectUnbiased(Potential& potential) {
  const Mean all = MeanOverBatches(potential, kExamples);
  const double norm =
      std::sqrt(std::inner_product(all.gradient.begin(), all.gradient.end(), all.gradient.begin(), 0.0));
  ASSERT_GT(norm, 0.1);
  for (const int64_t n : {1, 2, 4, 5}) {
    const Mean mean = MeanOverBatches(potential, n);
    double distance2 = 0;
    for (size_t p = 0; p < mean.gradient.size(); ++p) {
      distance2 += (mean.gradient[p] - all.gradient[p]) * (mean.gradient[p] - all.gradient[p]);
    }
    EXPECT_LT(std::sqrt(distance2), 1e-5 * norm) << "gradient, n = " << n;
    EXPECT_NEAR(mean.energy, all.energy, 1e-5 * all.energy) << "n = " << n;
  }
}

TEST(MinibatchScaling, FusedNetworkIsUnbiasedOverAllBatches) {
  for (const char* model : {"softmax_regression", "mlp", "lenet5"}) {
    SCOPED_TRACE(model);
    ExpectUnbiased(*MakeNetwork(model, SyntheticImages(kExamples), kPrecision));
  }
}

TEST(MinibatchScaling, EagerNetworkIsUnbiasedOverAllBatches) {
  const auto data = SyntheticImages(kExamples);
  const Dataset& description = data->description();
  for (const char* model : {"softmax_regression", "mlp", "lenet5"}) {
    SCOPED_TRACE(model);
    const ModelSpec spec{BuiltinModel{model, {}}};
    const auto layout = std::make_shared<const Layout>(
        *InferParameters(spec, description.input_shape, NumClasses(description.targets)));
    ExpectUnbiased(*MakeEagerPotential(*InferNetwork(spec, description.input_shape, NumClasses(description.targets)),
                                       layout, data, {description.normalisation, {}, kPrecision}, Device(),
                                       ChainBatching::kTogether));
  }
}

}  // namespace
}  // namespace chainfleet
