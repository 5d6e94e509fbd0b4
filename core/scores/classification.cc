#include "core/scores/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chainfleet {
namespace {

// Returns the mean of score(row, label) over rows.
template <typename Score>
double MeanOverRows(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels,
                    Score score) {
  if (labels.empty()) return 0;
  double sum = 0;
  for (size_t i = 0; i < labels.size(); ++i) sum += score(probability.subspan(i * num_classes, num_classes), labels[i]);
  return sum / static_cast<double>(labels.size());
}

}  // namespace

int64_t ArgMax(std::span<const double> row) {
  size_t best = 0;
  for (size_t k = 0; k < row.size(); ++k) {
    if (std::isnan(row[k])) return static_cast<int64_t>(k);
    if (row[k] > row[best]) best = k;
  }
  return static_cast<int64_t>(best);
}

double LogProbability(double p) { return std::log(std::max(p, std::numeric_limits<double>::min())); }

double Accuracy(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels) {
  return MeanOverRows(probability, num_classes, labels, [](std::span<const double> row, int32_t label) {
    const int64_t best = ArgMax(row);
    if (std::isnan(row[static_cast<size_t>(best)])) return std::numeric_limits<double>::quiet_NaN();
    return best == label ? 1.0 : 0.0;
  });
}

double NegativeLogLikelihood(std::span<const double> probability, int64_t num_classes,
                             std::span<const int32_t> labels) {
  return MeanOverRows(probability, num_classes, labels,
                      [](std::span<const double> row, int32_t label) { return -LogProbability(row[label]); });
}

double BrierScore(std::span<const double> probability, int64_t num_classes, std::span<const int32_t> labels) {
  return MeanOverRows(probability, num_classes, labels, [](std::span<const double> row, int32_t label) {
    double sum = 0;
    for (size_t k = 0; k < row.size(); ++k) {
      const double error = row[k] - (static_cast<int32_t>(k) == label ? 1.0 : 0.0);
      sum += error * error;
    }
    return sum;
  });
}

}  // namespace chainfleet
