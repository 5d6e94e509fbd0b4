// Analytic potentials: densities with closed forms, sampled like any model. Every kernel is tested on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"
#include "core/domain/parameter_shape.h"

namespace chainfleet {

// U = (theta - mean)' covariance^-1 (theta - mean) / 2. Without a covariance the coordinates are independent and share
// a precision, so that a few draws of a large `dimension` give 10^5 values.
struct GaussianPotential {
  static constexpr char kName[] = "gaussian";
  int64_t dimension = 1;
  std::optional<double> precision = {};  // shared by all coordinates; none: 1; excludes a covariance
  std::vector<double> covariance = {};   // [dimension, dimension], row-major, or empty
  std::vector<double> mean = {};         // [dimension], one number for all, or empty for 0
  static constexpr int64_t kMaxCovarianceDimension = 512;
  static void Fields(auto& self, auto&& visit) {
    visit("dimension", self.dimension, Between(1, int64_t{1} << 31));
    visit("precision", self.precision, Above(0));
    visit("covariance", self.covariance);
    visit("mean", self.mean);
  }
  bool operator==(const GaussianPotential&) const = default;
};

// U = -log sum_k weight_k N(theta; mean_k, stddev_k^2 I). K means: `dimension` independent coordinates, each of which
// follows the one-dimensional mixture. K * dimension means: one mixture of the whole vector, mean_k in row k.
struct GaussianMixturePotential {
  static constexpr char kName[] = "gaussian_mixture";
  std::vector<double> weights;         // [K], of any sum
  std::vector<double> means;           // [K] or [K, dimension]
  std::vector<double> stddev = {1.0};  // [K], or one number for all
  int64_t dimension = 1;
  bool joint() const { return dimension > 1 && means.size() != weights.size(); }
  static void Fields(auto& self, auto&& visit) {
    visit("weights", self.weights, Above(0));
    visit("means", self.means);
    visit("stddev", self.stddev, Above(0));
    visit("dimension", self.dimension, Between(1, int64_t{1} << 31));
  }
  bool operator==(const GaussianMixturePotential&) const = default;
};

// target ~ N(weights . x + intercept, noise_variance) over a data set of float32 targets, with the job's prior.
struct LinearRegressionPotential {
  static constexpr char kName[] = "linear_regression";
  double noise_variance = 1;
  bool intercept = true;
  static void Fields(auto& self, auto&& visit) {
    visit("noise_variance", self.noise_variance, Above(0));
    visit("intercept", self.intercept);
  }
  bool operator==(const LinearRegressionPotential&) const = default;
};

// P(label = 1) = 1 / (1 + exp(-(weights . x + intercept))) over a data set of two classes, with the job's prior.
struct LogisticRegressionPotential {
  static constexpr char kName[] = "logistic_regression";
  bool intercept = true;
  static void Fields(auto& self, auto&& visit) { visit("intercept", self.intercept); }
  bool operator==(const LogisticRegressionPotential&) const = default;
};

using PotentialKind =
    std::variant<GaussianPotential, GaussianMixturePotential, LinearRegressionPotential, LogisticRegressionPotential>;

// Returns true for a regression: N examples, mini-batches and a prior, as a network. Others are the whole law, N = 1.
bool IsRegression(const PotentialKind& potential);

// Returns "theta" [dimension]. A regression on inputs [input_shape...] has "weights" and "intercept" [1]; a Gaussian
// prior by layer treats each as a layer.
std::vector<ParameterShape> ParametersOf(const PotentialKind& potential, const std::vector<int64_t>& input_shape);

// Returns violations below "model.potential": bounds, sizes, a covariance that is not symmetric positive definite.
std::vector<FieldViolation> Validate(const PotentialKind& potential);

}  // namespace chainfleet
