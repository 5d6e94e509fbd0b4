#include "core/scores/temperature.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/scores/classification.h"

namespace chainfleet {
namespace {

// Turns the logits of one row into probabilities at 1 / T = beta.
void Soften(double beta, std::span<double> row) {
  const double largest = row[static_cast<size_t>(ArgMax(row))];
  double sum = 0;
  for (double& value : row) sum += value = std::exp(beta * (value - largest));
  for (double& value : row) value /= sum;
}

// The first and second derivative by beta of sum log sum_k exp(beta l_k) - beta l_label.
struct Slopes {
  double first = 0, second = 0;
};

Slopes SlopesAt(double beta, const std::vector<double>& logits, int64_t num_classes, std::span<const int32_t> labels) {
  Slopes slopes;
  std::vector<double> p(static_cast<size_t>(num_classes));
  for (size_t row = 0; row < labels.size(); ++row) {
    const std::span<const double> logit(logits.data() + row * p.size(), p.size());
    std::ranges::copy(logit, p.begin());
    Soften(beta, p);
    double mean = 0, square = 0;
    for (size_t k = 0; k < p.size(); ++k) {
      mean += p[k] * logit[k];
      square += p[k] * logit[k] * logit[k];
    }
    slopes.first += mean - logit[static_cast<size_t>(labels[row])];
    slopes.second += square - mean * mean;
  }
  return slopes;
}

}  // namespace

double FitTemperature(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels) {
  if (labels.empty()) return 1;
  std::vector<double> logits(probability.begin(), probability.end());
  std::ranges::transform(logits, logits.begin(), LogProbability);
  double low = 1 / kMostTemperature, high = 1 / kLeastTemperature, beta = 1;
  const double at_low = SlopesAt(low, logits, num_classes, labels).first;
  if (!std::isfinite(at_low)) return std::numeric_limits<double>::quiet_NaN();
  if (at_low >= 0) return kMostTemperature;
  if (SlopesAt(high, logits, num_classes, labels).first <= 0) return kLeastTemperature;
  // Takes Newton steps, and halves the bracket if a step would leave it.
  for (int i = 0; i < 100; ++i) {
    const Slopes slopes = SlopesAt(beta, logits, num_classes, labels);
    (slopes.first > 0 ? high : low) = beta;
    double next = beta - slopes.first / slopes.second;
    if (!(next > low && next < high)) next = (low + high) / 2;
    const bool close = std::abs(next - beta) <= 1e-9 * beta;
    beta = next;
    if (close) break;
  }
  return 1 / beta;
}

std::vector<double> ScaleTemperature(std::span<const double> probability, int64_t num_classes, double temperature) {
  std::vector<double> scaled(probability.begin(), probability.end());
  std::ranges::transform(scaled, scaled.begin(), LogProbability);
  const auto classes = static_cast<size_t>(num_classes);
  for (size_t first = 0; first < scaled.size(); first += classes) Soften(1 / temperature, {&scaled[first], classes});
  return scaled;
}

}  // namespace chainfleet
