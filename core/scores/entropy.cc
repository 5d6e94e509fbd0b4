#include "core/scores/entropy.h"

#include <cmath>

namespace chainfleet {

double Entropy(std::span<const double> probability) {
  double sum = 0;
  for (const double p : probability) {
    if (p != 0) sum -= p * std::log(p);  // keeps NaN
  }
  return sum;
}

double MutualInformation(double predictive_entropy, double expected_entropy) {
  const double difference = predictive_entropy - expected_entropy;
  return difference < 0 && difference > -1e-9 ? 0 : difference;
}

}  // namespace chainfleet
