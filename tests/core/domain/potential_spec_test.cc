#include "core/domain/potential_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/cholesky.h"
#include "core/domain/model_spec.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Paths(const PotentialKind& kind) {
  std::vector<std::string> paths;
  for (const FieldViolation& violation : Validate(kind)) paths.push_back(violation.path);
  return paths;
}

TEST(PotentialSpec, GaussianNamesItsInconsistentNumbers) {
  const std::string at = "model.potential.gaussian.";
  EXPECT_THAT(Paths(GaussianPotential{3, 2.0}), IsEmpty());
  EXPECT_THAT(Paths(GaussianPotential{0}), ElementsAre(at + "dimension"));
  EXPECT_THAT(Paths(GaussianPotential{2, 0.0}), ElementsAre(at + "precision"));
  EXPECT_THAT(Paths(GaussianPotential{3, {}, {}, {1, 2}}), ElementsAre(at + "mean"));
  EXPECT_THAT(Paths(GaussianPotential{3, {}, {}, {7}}), IsEmpty());
  EXPECT_THAT(Paths(GaussianPotential{2, {}, {2, 1, 1, 2}, {1, 2}}), IsEmpty());
  EXPECT_THAT(Paths(GaussianPotential{2, 1.0, {2, 1, 1, 2}}), ElementsAre(at + "precision"));
  EXPECT_THAT(Paths(GaussianPotential{2, {}, {2, 1, 1}}), ElementsAre(at + "covariance"));
  EXPECT_THAT(Paths(GaussianPotential{2, {}, {2, 1, 1.001, 2}}), ElementsAre(at + "covariance"));
  EXPECT_THAT(Paths(GaussianPotential{2, {}, {1, 2, 2, 1}}), ElementsAre(at + "covariance"));
  EXPECT_THAT(Paths(GaussianPotential{2, {}, {2, std::nan(""), 1, 2}}), ElementsAre(at + "covariance[1]"));
  EXPECT_THAT(Paths(GaussianPotential{513, {}, {1}}), ElementsAre(at + "covariance"));
}

TEST(PotentialSpec, MixtureTakesOneMeanForEachWeightOrOneForEachCoordinate) {
  const std::string at = "model.potential.gaussian_mixture.";
  EXPECT_THAT(Paths(GaussianMixturePotential{{1, 3}, {-2, 2}, {0.5, 1}, 100}), IsEmpty());
  EXPECT_THAT(Paths(GaussianMixturePotential{{1, 3}, {-2, 2, 0, 1}, {0.5}, 2}), IsEmpty());
  EXPECT_FALSE((GaussianMixturePotential{{1, 3}, {-2, 2}, {1}, 100}).joint());
  EXPECT_TRUE((GaussianMixturePotential{{1, 3}, {-2, 2, 0, 1}, {1}, 2}).joint());
  EXPECT_THAT(Paths(GaussianMixturePotential{}), ElementsAre(at + "weights"));
  EXPECT_THAT(Paths(GaussianMixturePotential{{1, 0}, {1, 2}}), ElementsAre(at + "weights[1]"));
  EXPECT_THAT(Paths(GaussianMixturePotential{{1, 3}, {1, 2, 3}, {1}, 2}), ElementsAre(at + "means"));
  EXPECT_THAT(Paths(GaussianMixturePotential{{1, 3}, {1, 2}, {1, 1, 1}}), ElementsAre(at + "stddev"));
}

TEST(PotentialSpec, RegressionsHaveDataAndOneWeightForEachInput) {
  EXPECT_THAT(Paths(LinearRegressionPotential{0}), ElementsAre("model.potential.linear_regression.noise_variance"));
  const auto with = *InferParameters({LogisticRegressionPotential{}}, {2, 3}, 2);
  ASSERT_EQ(with.size(), 2u);
  EXPECT_EQ(with[0].name, "weights");
  EXPECT_EQ(with[1].name, "intercept");
  EXPECT_EQ(with[1].offset, 6);
  EXPECT_EQ(NumParameters(*InferParameters({LinearRegressionPotential{1, false}}, {13}, 0)), 13);
  EXPECT_FALSE(InferParameters({LinearRegressionPotential{}}, {}, 0).ok());
  EXPECT_TRUE(ModelSpec{LinearRegressionPotential{}}.has_data());
  EXPECT_FALSE(ModelSpec{LinearRegressionPotential{}}.is_network());
  EXPECT_FALSE(ModelSpec{GaussianMixturePotential{}}.has_data());
}

TEST(Cholesky, FactorAndInverseMatchTheMatrix) {
  constexpr int64_t kN = 7;
  std::vector<double> matrix(kN * kN);
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < kN; ++j) matrix[i * kN + j] = (i == j) * (2.0 + i) + 1.0 / (1 + i + j);
  }
  const auto factor = CholeskyFactor(matrix, kN);
  ASSERT_TRUE(factor.has_value());
  const std::vector<double> inverse = InverseFromCholesky(*factor, kN);
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      double square = 0, identity = 0;
      for (int64_t k = 0; k < kN; ++k) {
        square += (*factor)[i * kN + k] * (*factor)[j * kN + k];
        identity += matrix[i * kN + k] * inverse[k * kN + j];
      }
      EXPECT_NEAR(square, matrix[i * kN + j], 1e-14);
      EXPECT_NEAR(identity, i == j, 1e-14);
    }
  }
  EXPECT_FALSE(CholeskyFactor({1, 2, 2, 1}, 2).has_value());
  EXPECT_FALSE(CholeskyFactor({std::numeric_limits<double>::infinity()}, 1).has_value());
}

}  // namespace
}  // namespace chainfleet
