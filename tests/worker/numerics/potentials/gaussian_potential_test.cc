#include "worker/numerics/potentials/gaussian_potential.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/network_fixture.h"

namespace chainfleet {
namespace {

// Three tensors of odd sizes: every one leaves padding in the row.
std::shared_ptr<const Layout> OddLayout() {
  return std::make_shared<const Layout>(
      std::vector<ParameterShape>{{"a", {37}, 0, 1}, {"b", {1}, 37, 1}, {"c", {3, 11}, 38, 1}});
}

struct Evaluation {
  std::vector<double> energy, log_prior;
  std::vector<std::vector<float>> gradient;
};

Evaluation Evaluate(const ThetaArena& theta, double precision) {
  const auto potential = MakeGaussianPotential({.precision = precision}, theta.shared_layout(), Device());
  ThetaArena gradient(theta.shared_layout(), Device());
  for (int64_t r = 0; r < theta.rows(); ++r) {
    gradient.AddRow();
    gradient.WriteRow(r, std::vector<float>(static_cast<size_t>(theta.layout().num_parameters()), 7));  // overwritten
  }
  const auto rows = static_cast<size_t>(theta.rows());
  Evaluation result{std::vector<double>(rows), std::vector<double>(rows), {}};
  potential->Evaluate(theta, {}, &gradient, result.energy.data());
  potential->LogPrior(theta, nullptr, result.log_prior.data());
  for (int64_t r = 0; r < theta.rows(); ++r) result.gradient.push_back(gradient.ReadRow(r));
  return result;
}

class GaussianPotentialTest : public ::testing::Test {
 protected:
  void TearDown() override { at::set_num_threads(1); }
};

TEST_F(GaussianPotentialTest, IsHalfThePrecisionTimesTheSquaredLengthOfEachRow) {
  const ThetaArena theta = RandomTheta(OddLayout(), 5);
  const Evaluation result = Evaluate(theta, 2.5);
  for (size_t r = 0; r < 5; ++r) {
    const std::vector<float> parameters = theta.ReadRow(static_cast<int64_t>(r));
    double square = 0;
    for (size_t p = 0; p < parameters.size(); ++p) {
      square += static_cast<double>(parameters[p]) * parameters[p];
      EXPECT_EQ(result.gradient[r][p], 2.5f * parameters[p]);
    }
    EXPECT_NEAR(result.energy[r], 1.25 * square, 1e-14);
    EXPECT_EQ(result.log_prior[r], -result.energy[r]);
  }
}

TEST_F(GaussianPotentialTest, HasNoExamplesAndAGradientThatIsComplete) {
  const ThetaArena theta = RandomTheta(OddLayout(), 2);
  const auto potential = MakeGaussianPotential({.precision = 1}, theta.shared_layout(), Device());
  EXPECT_EQ(potential->num_examples(), 1);
  EXPECT_EQ(potential->prior_precision(), 0);
  EXPECT_EQ(potential->layout(), theta.shared_layout());
  const std::vector<int64_t> ids(6);
  std::vector<double> losses(6, 9);
  potential->Losses(theta, {ids.data(), 3}, losses.data());
  EXPECT_EQ(losses, std::vector<double>(6, 0));
}

TEST_F(GaussianPotentialTest, BitsOfARowDependNeitherOnRowsNorOnThreads) {
  const auto wide = std::make_shared<const Layout>(std::vector<ParameterShape>{{"theta", {20001}, 0, 1}});
  const Evaluation alone = Evaluate(RandomTheta(wide, 1, 8), 3);
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    const Evaluation together = Evaluate(RandomTheta(wide, 4), 3);  // its row 3 has seed 8
    EXPECT_EQ(together.energy[3], alone.energy[0]) << threads << " threads";
    EXPECT_EQ(together.gradient[3], alone.gradient[0]);
  }
}

TEST_F(GaussianPotentialTest, ANonFiniteRowAffectsNoOther) {
  const Evaluation healthy = Evaluate(RandomTheta(OddLayout(), 3), 2);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    ThetaArena theta = RandomTheta(OddLayout(), 3);
    std::vector<float> parameters = theta.ReadRow(1);
    parameters[40] = bad;
    theta.WriteRow(1, parameters);
    const Evaluation result = Evaluate(theta, 2);
    EXPECT_FALSE(std::isfinite(result.energy[1]));
    for (const size_t r : {0, 2}) {
      EXPECT_EQ(result.energy[r], healthy.energy[r]);
      EXPECT_EQ(result.gradient[r], healthy.gradient[r]);
    }
  }
}

}  // namespace
}  // namespace chainfleet
