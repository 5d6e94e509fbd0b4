#include "core/scores/stacking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/cholesky.h"

namespace chainfleet {
namespace {

constexpr int kMostSteps = 200;
constexpr double kGap = 1e-16, kResidual = 1e-12;
constexpr double kLeastWeight = 1e-9;  // a smaller one is 0 but for rounding

// Returns the densities, each row divided by its largest; rows without any are left out.
std::vector<double> ScaledDensities(std::span<const double> log_density, size_t chains) {
  std::vector<double> scaled;
  scaled.reserve(log_density.size());
  for (size_t at = 0; at + chains <= log_density.size(); at += chains) {
    const std::span<const double> row = log_density.subspan(at, chains);
    const double largest = *std::ranges::max_element(row);
    if (largest == -std::numeric_limits<double>::infinity()) continue;
    for (const double value : row) scaled.push_back(std::exp(value - largest));
  }
  return scaled;
}

// F(x) = sum_k x_k - (1/n) sum_i log sum_k p_ik x_k. Its minimum over x >= 0 is the stacking weights: there the
// gradient condition x_k dF/dx_k = 0, summed over k, says that x sums to 1.
struct Derivatives {
  std::vector<double> first;   // [K]
  std::vector<double> second;  // [K, K], lower half
};

Derivatives DerivativesAt(const std::vector<double>& x, const std::vector<double>& density) {
  const size_t chains = x.size();
  const double rows = static_cast<double>(density.size() / chains);
  Derivatives at{std::vector<double>(chains, 1), std::vector<double>(chains * chains)};
  std::vector<double> share(chains);  // p_ik / sum_j p_ij x_j
  for (auto row = density.begin(); row != density.end(); row += static_cast<int64_t>(chains)) {
    const double mixture = std::inner_product(x.begin(), x.end(), row, 0.0);
    for (size_t k = 0; k < chains; ++k) share[k] = row[static_cast<int64_t>(k)] / mixture;
    for (size_t k = 0; k < chains; ++k) {
      at.first[k] -= share[k] / rows;
      const double scaled = share[k] / rows;
      double* const second = at.second.data() + k * chains;
      for (size_t j = 0; j <= k; ++j) second[j] += scaled * share[j];
    }
  }
  return at;
}

// The longest step along `direction` that keeps 0.5 % of each value of `from`, at most 1.
double LongestStep(const std::vector<double>& from, const std::vector<double>& direction) {
  double step = 1;
  for (size_t k = 0; k < from.size(); ++k) {
    if (direction[k] < 0) step = std::min(step, -0.995 * from[k] / direction[k]);
  }
  return step;
}

void Advance(double step, const std::vector<double>& direction, std::vector<double>* values) {
  for (size_t k = 0; k < values->size(); ++k) (*values)[k] += step * direction[k];
}

}  // namespace

std::vector<double> StackingWeights(std::span<const double> log_density, int64_t num_chains) {
  const auto chains = static_cast<size_t>(num_chains);
  if (std::ranges::any_of(log_density, [](double value) { return std::isnan(value); })) {
    return std::vector<double>(chains, std::numeric_limits<double>::quiet_NaN());
  }
  const std::vector<double> density = ScaledDensities(log_density, chains);
  std::vector<double> x(chains, 1 / static_cast<double>(chains)), z(chains, 1);
  if (density.empty()) return x;
  // A primal-dual interior point method: x_k z_k = mu falls to 0, with z = dF/dx (Nocedal and Wright, "Numerical
  // Optimization", 2nd edition, section 19.2).
  for (int i = 0; i < kMostSteps; ++i) {
    Derivatives at = DerivativesAt(x, density);
    const double gap = std::inner_product(x.begin(), x.end(), z.begin(), 0.0) / static_cast<double>(chains);
    double residual = 0;
    for (size_t k = 0; k < chains; ++k) residual = std::max(residual, std::abs(at.first[k] - z[k]));
    if (gap < kGap && residual < kResidual) break;
    const double mu = 0.1 * gap;
    std::vector<double> dx(chains), dz(chains);
    for (size_t k = 0; k < chains; ++k) {
      at.second[k * chains + k] += z[k] / x[k];
      dx[k] = mu / x[k] - at.first[k];
    }
    const auto factor = CholeskyFactor(std::move(at.second), num_chains);
    if (!factor) break;  // as close as rounding permits
    SolveCholesky(*factor, &dx);
    for (size_t k = 0; k < chains; ++k) dz[k] = (mu - z[k] * dx[k]) / x[k] - z[k];
    const double step = std::min(LongestStep(x, dx), LongestStep(z, dz));
    Advance(step, dx, &x);
    Advance(step, dz, &z);
  }
  double sum = 0;
  for (double& weight : x) sum += weight = weight < kLeastWeight ? 0 : weight;
  for (double& weight : x) weight /= sum;
  return x;
}

std::vector<double> PseudoBmaWeights(std::span<const double> log_density, int64_t num_chains) {
  const auto chains = static_cast<size_t>(num_chains);
  std::vector<double> weights(chains);
  for (size_t i = 0; i < log_density.size(); ++i) weights[i % chains] += log_density[i];
  const double largest = *std::ranges::max_element(weights);
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace chainfleet
