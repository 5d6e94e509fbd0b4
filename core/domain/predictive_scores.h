// The scores that a Bayesian model average gives each row.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/domain/targets.h"

namespace chainfleet {

// Rows-major float64 of n rows. m, v: mean and variance of a draw. Means over draws count their weights.
struct NumberScores {
  std::vector<double> mean;                // [n] mean of m
  std::vector<double> variance_aleatoric;  // [n] mean of v
  std::vector<double> variance_epistemic;  // [n] variance of m

  static constexpr RowArray<NumberScores> kArrays[] = {{"mean", &NumberScores::mean},
                                                       {"variance_aleatoric", &NumberScores::variance_aleatoric},
                                                       {"variance_epistemic", &NumberScores::variance_epistemic}};
  static void Fields(auto& self, auto&& visit) { VisitArrays(self, visit); }
};

// The same of labels of K classes. p: class probabilities of a draw; entropies are in nats.
struct ClassScores {
  std::vector<double> mean_probability;    // [n, K]
  std::vector<double> log_probability;     // [n, K] its logarithm
  std::vector<double> max_probability;     // [n] its largest
  std::vector<double> predictive_entropy;  // [n] H of the mean
  std::vector<double> expected_entropy;    // [n] mean of H(p)
  std::vector<double> mutual_information;  // [n] their difference
  // [n] 1 - share of draws whose likeliest class is the most frequent (Freeman 1965)
  std::vector<double> variation_ratio;

  static constexpr RowArray<ClassScores> kArrays[] = {{"mean_probability", &ClassScores::mean_probability, true},
                                                      {"log_probability", &ClassScores::log_probability, true},
                                                      {"max_probability", &ClassScores::max_probability},
                                                      {"predictive_entropy", &ClassScores::predictive_entropy},
                                                      {"expected_entropy", &ClassScores::expected_entropy},
                                                      {"mutual_information", &ClassScores::mutual_information},
                                                      {"variation_ratio", &ClassScores::variation_ratio}};
  static void Fields(auto& self, auto&& visit) { VisitArrays(self, visit); }
};

struct PredictiveScores {
  std::variant<NumberScores, ClassScores> of;

  // REQUIRES: scores of this sort.
  NumberScores& numbers() { return std::get<NumberScores>(of); }
  const NumberScores& numbers() const { return std::get<NumberScores>(of); }
  ClassScores& classes() { return std::get<ClassScores>(of); }
  const ClassScores& classes() const { return std::get<ClassScores>(of); }

  bool any() const {
    return std::visit([](const auto& scores) { return !(scores.*scores.kArrays[0].values).empty(); }, of);
  }
  static void Fields(auto& self, auto&& visit) { VisitSorts(self.of, visit); }
};

// The scores of a network that learns these: all of them, and how many values a row has.
inline std::vector<ArrayName> ScoresOfTarget(const Targets& targets) {
  return ArraysOf<decltype(PredictiveScores::of)>(targets);
}
inline int64_t ScoreValues(const Targets& targets) {
  int64_t values = 0;
  for (const ArrayName& score : ScoresOfTarget(targets)) values += score.per_class ? NumClasses(targets) : 1;
  return values;
}

}  // namespace chainfleet
