#include "core/scores/stacking.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsNan;
using ::testing::Pointwise;

// R: outer(1:n, 1:k, function(i, j) -1 - abs(sin(i*j*0.7)) - 0.5*abs(cos(i*1.3 + j*j)))
std::vector<double> Made(int n, int k) {
  std::vector<double> matrix;
  for (int i = 1; i <= n; ++i) {
    for (int j = 1; j <= k; ++j) {
      matrix.push_back(-1 - std::abs(std::sin(i * j * 0.7)) - 0.5 * std::abs(std::cos(i * 1.3 + j * j)));
    }
  }
  return matrix;
}

std::vector<double> Random(size_t n, size_t k, double scale) {
  std::mt19937_64 source(k);
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> matrix(n * k);
  for (double& value : matrix) value = normal(source);
  return matrix;
}

// The optimum of a concave function over the simplex: (1/n) sum_i p_ik / sum_j w_j p_ij is 1 where w_k > 0, else at
// most 1.
void ExpectOptimal(const std::vector<double>& log_density, const std::vector<double>& weights) {
  const size_t chains = weights.size();
  std::vector<double> slopes(chains);
  const double rows = static_cast<double>(log_density.size() / chains);
  for (size_t at = 0; at < log_density.size(); at += chains) {
    double mixture = 0;
    for (size_t k = 0; k < chains; ++k) mixture += weights[k] * std::exp(log_density[at + k]);
    for (size_t k = 0; k < chains; ++k) slopes[k] += std::exp(log_density[at + k]) / mixture / rows;
  }
  for (size_t k = 0; k < chains; ++k) {
    EXPECT_GE(weights[k], 0);
    if (weights[k] > 0) {
      EXPECT_NEAR(slopes[k], 1, 1e-10) << k;
    }
    EXPECT_LE(slopes[k], 1 + 1e-10) << k;
  }
  EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1, 1e-12);
}

// R's loo 2.5.1: stacking_weights(m, optim_control = list(reltol = 1e-15, maxit = 100000)).
TEST(Stacking, EqualsLoo) {
  EXPECT_THAT(StackingWeights(Made(30, 3), 3), Pointwise(DoubleNear(1e-6), {0.1680828460, 0.2472790758, 0.5846380782}));
  EXPECT_THAT(StackingWeights(Made(40, 5), 5),  // its barrier keeps the last one from 0
              Pointwise(DoubleNear(1.1e-6), {0.1783675425, 0.1260298605, 0.4505388695, 0.2450626875, 0.0000010401}));
}

// R's loo 2.5.1: pseudobma_weights(m, BB = FALSE).
TEST(PseudoBma, EqualsLoo) {
  EXPECT_THAT(PseudoBmaWeights(Made(30, 3), 3),
              Pointwise(DoubleNear(1e-11), {0.154895011226, 0.205144989990, 0.639959998784}));
  EXPECT_THAT(
      PseudoBmaWeights(Made(40, 5), 5),
      Pointwise(DoubleNear(1e-11), {0.136603681702, 0.139220756813, 0.425198190605, 0.195016402190, 0.103960968690}));
}

TEST(Stacking, IsOptimal) {
  for (const auto& [rows, chains, scale] : {std::tuple(50, 3, 1.0),
                                            {1000, 16, 0.3},
                                            {1000, 16, 5.0},
                                            {5, 10, 2.0},
                                            {400, 64, 0.5},
                                            {500, 4, 100.0},
                                            {1, 5, 1.0},
                                            {300, 1, 1.0}}) {
    const std::vector<double> matrix = Random(static_cast<size_t>(rows), static_cast<size_t>(chains), scale);
    ExpectOptimal(matrix, StackingWeights(matrix, chains));
  }
}

TEST(Stacking, GivesEqualChainsEqualWeights) {
  EXPECT_THAT(StackingWeights(std::vector<double>(12, -2), 4), Each(DoubleNear(0.25, 1e-9)));
  std::vector<double> matrix = Random(100, 3, 1);
  for (size_t row = 0; row < 100; ++row) matrix[3 * row + 2] = matrix[3 * row];
  const std::vector<double> weights = StackingWeights(matrix, 3);
  EXPECT_NEAR(weights[0], weights[2], 1e-9);
}

// Chain 0 explains half the rows, chain 1 the other half, chain 2 none: only the split decides.
TEST(Stacking, SplitsRowsThatSingleChainsExplain) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  std::vector<double> matrix;
  for (int row = 0; row < 4; ++row) matrix.insert(matrix.end(), {row < 2 ? -1 : kNone, row < 2 ? kNone : -9, kNone});
  matrix.insert(matrix.end(), {kNone, kNone, kNone});  // says nothing
  EXPECT_THAT(StackingWeights(matrix, 3), ElementsAre(DoubleNear(0.5, 1e-9), DoubleNear(0.5, 1e-9), 0));
}

TEST(ChainWeights, AreNanOfNan) {
  const std::vector<double> matrix = {-1, -2, std::nan(""), -1};
  EXPECT_THAT(StackingWeights(matrix, 2), Each(IsNan()));
  EXPECT_THAT(PseudoBmaWeights(matrix, 2), Each(IsNan()));
}

TEST(PseudoBma, SurvivesManyRows) {
  std::vector<double> matrix;
  for (int row = 0; row < 100000; ++row) matrix.insert(matrix.end(), {-50, -50.0001});
  const std::vector<double> weights = PseudoBmaWeights(matrix, 2);
  EXPECT_NEAR(weights[0] / weights[1], std::exp(10), 1e-2 * std::exp(10));
}

}  // namespace
}  // namespace chainfleet
