// The scores that a Bayesian model average gives each row.
#pragma once

#include <cstdint>
#include <iterator>
#include <variant>
#include <vector>

#include "core/domain/targets.h"

namespace chainfleet {

// Rows-major float64, entropies in nats, of n rows and K classes. p: class probabilities of a draw; m, v: mean and
// variance of a draw for float32 targets. Means over draws count their weights. Arrays that do not exist for
// the kind of target are empty.
struct PredictiveScores {
  std::vector<double> mean_probability;    // [n, K]
  std::vector<double> log_probability;     // [n, K] its logarithm
  std::vector<double> max_probability;     // [n] its largest
  std::vector<double> predictive_entropy;  // [n] H of the mean
  std::vector<double> expected_entropy;    // [n] mean of H(p)
  std::vector<double> mutual_information;  // [n] their difference
  std::vector<double>
      variation_ratio;       // [n] 1 - share of draws whose likeliest class is the most frequent (Freeman 1965)
  std::vector<double> mean;  // [n] mean of m
  std::vector<double> variance_aleatoric;  // [n] mean of v
  std::vector<double> variance_epistemic;  // [n] variance of m
  bool any() const { return !mean_probability.empty() || !mean.empty(); }
  static void Fields(auto& self, auto&& visit) {
    visit("mean_probability", self.mean_probability);
    visit("log_probability", self.log_probability);
    visit("max_probability", self.max_probability);
    visit("predictive_entropy", self.predictive_entropy);
    visit("expected_entropy", self.expected_entropy);
    visit("mutual_information", self.mutual_information);
    visit("variation_ratio", self.variation_ratio);
    visit("mean", self.mean);
    visit("variance_aleatoric", self.variance_aleatoric);
    visit("variance_epistemic", self.variance_epistemic);
  }
};

// One score's name, as outputs and files call it, and its place.
struct ScoreField {
  const char* name;
  std::vector<double> PredictiveScores::*values;
  bool per_class;  // [n, K], else [n]
};

inline constexpr ScoreField kClassScores[] = {
    {"mean_probability", &PredictiveScores::mean_probability, true},
    {"log_probability", &PredictiveScores::log_probability, true},
    {"max_probability", &PredictiveScores::max_probability, false},
    {"predictive_entropy", &PredictiveScores::predictive_entropy, false},
    {"expected_entropy", &PredictiveScores::expected_entropy, false},
    {"mutual_information", &PredictiveScores::mutual_information, false},
    {"variation_ratio", &PredictiveScores::variation_ratio, false},
};
inline constexpr ScoreField kNumberScores[] = {
    {"mean", &PredictiveScores::mean, false},
    {"variance_aleatoric", &PredictiveScores::variance_aleatoric, false},
    {"variance_epistemic", &PredictiveScores::variance_epistemic, false},
};

// The scores of a network that learns these.
inline std::vector<ScoreField> ScoresOfTarget(const Targets& targets) {
  if (std::holds_alternative<Numbers>(targets)) return {std::begin(kNumberScores), std::end(kNumberScores)};
  return {std::begin(kClassScores), std::end(kClassScores)};
}

}  // namespace chainfleet
