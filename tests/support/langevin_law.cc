#include "tests/support/langevin_law.h"

#include <array>
#include <cmath>
#include <numeric>

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

// The covariance `steps` updates into an epoch that begins with `sigma`.
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

struct Moment {
  double value = 0, error = 0;
};

Moment SecondMoment(const std::vector<float>& a, const std::vector<float>& b, int64_t group) {
  const int64_t groups = static_cast<int64_t>(a.size()) / group;
  double sum = 0, sum2 = 0;
  for (int64_t i = 0; i < groups; ++i) {
    const double mean =
        std::inner_product(a.begin() + i * group, a.begin() + (i + 1) * group, b.begin() + i * group, 0.0) /
        static_cast<double>(group);
    sum += mean;
    sum2 += mean * mean;
  }
  const double n = static_cast<double>(groups), value = sum / n;
  return {value, std::sqrt((sum2 / n - value * value) / n)};
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
  const auto check = [&](const std::string& name, Moment moment, double expected) {
    const std::string measured = name + " is " + std::to_string(moment.value) + " +- " + std::to_string(moment.error) +
                                 ", law says " + std::to_string(expected);
    // Written so that NaN is a misfit.
    if (!(std::abs(moment.value - expected) <= 4 * moment.error)) {
      misfits.push_back(measured);
    } else if (!(moment.error <= 0.004 * std::abs(expected))) {
      misfits.push_back(measured + ": measured too roughly");
    }
  };
  check("var theta", SecondMoment(samples.theta, samples.theta, samples.group), law.var);
  if (!samples.theta_a.empty()) {
    check("cov", SecondMoment(samples.theta, samples.theta_a, samples.group), law.cov);
    check("var theta_a", SecondMoment(samples.theta_a, samples.theta_a, samples.group), law.var_a);
  }
  return misfits;
}

}  // namespace chainfleet::testing
