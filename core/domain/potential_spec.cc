#include "core/domain/potential_spec.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/cholesky.h"

namespace chainfleet {
namespace {

using Violations = std::vector<FieldViolation>;

bool Intercept(const PotentialKind& potential) {
  const auto* linear = std::get_if<LinearRegressionPotential>(&potential);
  return linear != nullptr ? linear->intercept : std::get<LogisticRegressionPotential>(potential).intercept;
}

// Checks symmetry and definiteness together, because the user asks one question: is this matrix a covariance?
void CheckCovariance(const GaussianPotential& gaussian, const std::string& path, Violations* violations) {
  const int64_t n = gaussian.dimension, most = GaussianPotential::kMaxCovarianceDimension;
  if (n > most) {
    violations->push_back({path, absl::StrCat("is for at most ", most, " dimensions, there are ", n)});
    return;
  }
  if (static_cast<int64_t>(gaussian.covariance.size()) != n * n) {
    violations->push_back({path, absl::StrCat("must have the ", n, " x ", n, " numbers of dimension ", n,
                                              " row by row, has ", gaussian.covariance.size())});
    return;
  }
  const auto at = [&](int64_t i, int64_t j) { return gaussian.covariance[i * n + j]; };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      if (std::abs(at(i, j) - at(j, i)) <= 1e-9 * std::sqrt(std::abs(at(i, i) * at(j, j)))) continue;
      violations->push_back({path, absl::StrCat("must be symmetric: row ", i, ", column ", j, " is ", at(i, j),
                                                ", row ", j, ", column ", i, " is ", at(j, i), " (from 0)")});
      return;
    }
  }
  if (!CholeskyFactor(gaussian.covariance, n)) violations->push_back({path, "must be positive definite, is not"});
}

void CheckSizes(const GaussianPotential& gaussian, const std::string& path, Violations* violations) {
  const int64_t means = static_cast<int64_t>(gaussian.mean.size());
  if (means > 1 && means != gaussian.dimension) {
    violations->push_back({path + ".mean", absl::StrCat("must have one number or the ", gaussian.dimension,
                                                        " of dimension, has ", means)});
  }
  if (gaussian.covariance.empty()) return;
  if (gaussian.precision) violations->push_back({path + ".precision", "give only one of precision and covariance"});
  CheckCovariance(gaussian, path + ".covariance", violations);
}

void CheckSizes(const GaussianMixturePotential& mixture, const std::string& path, Violations* violations) {
  const int64_t k = static_cast<int64_t>(mixture.weights.size()), means = static_cast<int64_t>(mixture.means.size()),
                deviations = static_cast<int64_t>(mixture.stddev.size());
  if (k == 0) {
    violations->push_back({path + ".weights", "empty; give one weight for each component"});
    return;
  }
  if (means != k && means != k * mixture.dimension) {
    violations->push_back(
        {path + ".means", absl::StrCat("must have ", k, " numbers, one for each weight (independent coordinates), or ",
                                       k, " x ", mixture.dimension, " (a mixture of the whole vector), has ", means)});
  }
  if (deviations != 1 && deviations != k) {
    violations->push_back(
        {path + ".stddev", absl::StrCat("must have one number or ", k, ", one for each weight, has ", deviations)});
  }
}

void CheckSizes(const LinearRegressionPotential&, const std::string&, Violations*) {}
void CheckSizes(const LogisticRegressionPotential&, const std::string&, Violations*) {}

}  // namespace

bool IsRegression(const PotentialKind& potential) {
  return std::holds_alternative<LinearRegressionPotential>(potential) ||
         std::holds_alternative<LogisticRegressionPotential>(potential);
}

std::vector<ParameterShape> ParametersOf(const PotentialKind& potential, const std::vector<int64_t>& input_shape) {
  if (const auto* gaussian = std::get_if<GaussianPotential>(&potential)) return {{"theta", {gaussian->dimension}}};
  if (const auto* mixture = std::get_if<GaussianMixturePotential>(&potential)) return {{"theta", {mixture->dimension}}};
  const int64_t inputs = NumValues(input_shape);
  std::vector<ParameterShape> parameters = {{"weights", {inputs}}};
  if (Intercept(potential)) parameters.push_back({"intercept", {1}, inputs});
  return parameters;
}

std::vector<FieldViolation> Validate(const PotentialKind& potential) {
  Violations violations;
  std::visit(
      [&](const auto& spec) {
        const std::string path = std::string("model.potential.") + spec.kName;
        CheckBounds(spec, path, &violations);
        if (violations.empty()) CheckSizes(spec, path, &violations);
      },
      potential);
  return violations;
}

}  // namespace chainfleet
