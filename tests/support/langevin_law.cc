#include "tests/support/langevin_law.h"

#include <array>
#include <cmath>
#include <numeric>

#include "tests/support/estimate.h"

namespace chainfleet::testing {
namespace {

using Matrix = std::array<double, 4>;  // row by row

Matrix Product(const Matrix& a, const Matrix& b) {
  return {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
}

Matrix Transpose(const Matrix& a) { return {a[0], a[2], a[1], a[3]}; }

// Covariance of the gradients of two batches of one epoch.
double GradientCovariance(const Quadratic& q, Minibatches minibatches, bool same_batch) {
  if (minibatches == Minibatches::kIndependent) return same_batch ? q.gradient_variance : 0;
  const double n = static_cast<double>(q.batch_size), all = static_cast<double>(q.num_examples);
  const double variance = q.gradient_variance * (all - n) / (all - 1);
  return same_batch ? variance : -variance / (all / n - 1);
}

// Returns the covariance after `steps` updates of an epoch that begins with `sigma`.
Matrix After(const Quadratic& q, Minibatches minibatches, int64_t steps, Matrix sigma) {
  const double a = q.step_size, g = q.coupling;
  const Matrix b = {1 - a * (q.k + g), a * g, a * g, 1 - a * g};
  std::vector<Matrix> powers = {{1, 0, 0, 1}};
  for (int64_t j = 0; j < steps; ++j) powers.push_back(Product(powers.back(), b));
  sigma = Product(Product(powers[steps], sigma), Transpose(powers[steps]));
  for (int64_t j = 0; j < steps; ++j) {
    const Matrix noise = Product(powers[j], Transpose(powers[j]));
    for (int i = 0; i < 4; ++i) sigma[i] += 2 * a * q.temperature * noise[i];
    for (int64_t l = 0; l < steps; ++l) {
      const double c = a * a * GradientCovariance(q, minibatches, j == l);
      for (int i = 0; i < 4; ++i) sigma[i] += c * powers[j][i / 2 * 2] * powers[l][i % 2 * 2];
    }
  }
  return sigma;
}

// Returns the second moment of a b, from its mean in each group.
Estimate SecondMoment(const std::vector<float>& a, const std::vector<float>& b, int64_t group) {
  std::vector<double> means;
  for (auto i = a.begin(), j = b.begin(); i != a.end(); i += group, j += group) {
    means.push_back(std::inner_product(i, i + group, j, 0.0) / static_cast<double>(group));
  }
  return EstimateOf(means);
}

// Returns `name` with the misfit, or "" if there is none.
void Check(const std::string& name, const Estimate& moment, double expected, std::vector<std::string>* misfits) {
  const std::string measured = name + " is " + std::to_string(moment.value) + " +- " + std::to_string(moment.error) +
                               ", law says " + std::to_string(expected);
  // Written so that NaN counts as a misfit.
  if (!(std::abs(moment.value - expected) <= 4 * moment.error)) {
    misfits->push_back(measured);
  } else if (!(moment.error <= 0.004 * std::abs(expected))) {
    misfits->push_back(measured + ": measured too roughly");
  }
}

}  // namespace

Law StationaryLaw(const Quadratic& q, Minibatches minibatches, int64_t position) {
  constexpr int kEpochs = 20000;
  Matrix sigma = {};
  for (int i = 0; i < kEpochs; ++i) sigma = After(q, minibatches, q.num_examples / q.batch_size, sigma);
  sigma = After(q, minibatches, position, sigma);
  return {sigma[0], sigma[1], sigma[3]};
}

std::vector<std::string> Misfits(const Samples& samples, const Law& law) {
  std::vector<std::string> misfits;
  Check("var theta", SecondMoment(samples.theta, samples.theta, samples.group), law.var, &misfits);
  if (samples.theta_a.empty()) return misfits;
  Check("cov", SecondMoment(samples.theta, samples.theta_a, samples.group), law.cov, &misfits);
  Check("var theta_a", SecondMoment(samples.theta_a, samples.theta_a, samples.group), law.var_a, &misfits);
  return misfits;
}

std::vector<std::string> Misfits(const MomentTraces& traces, const Law& law) {
  std::vector<std::string> misfits;
  Check("var theta", EstimateOf(Traces{traces.theta, traces.chains}), law.var, &misfits);
  if (traces.theta_a.empty()) return misfits;
  Check("cov", EstimateOf(Traces{traces.cross, traces.chains}), law.cov, &misfits);
  Check("var theta_a", EstimateOf(Traces{traces.theta_a, traces.chains}), law.var_a, &misfits);
  return misfits;
}

}  // namespace chainfleet::testing
