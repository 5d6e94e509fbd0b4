// Split-conformal prediction: sets of classes, and intervals of numbers, that cover a stated share of rows, whatever
// the model (Vovk, Gammerman and Shafer 2005; Angelopoulos and Bates, "Conformal Prediction: A Gentle Introduction",
// 2023).
//
// Each row has a score: 1 - p(label) for classes (Sadinle, Lei and Wasserman 2019), |target - mean| / standard
// deviation for numbers (Lei et al. 2018). The threshold at `level` is the ceil((n + 1) level)-th smallest score of n
// calibration rows. If a new row is exchangeable with them and the model did not learn from them, its score is at most
// the threshold with a probability of at least `level`, over calibration rows and new row together.
#pragma once

#include <span>
#include <vector>

namespace chainfleet {

inline constexpr int kConformalLevels = 999;  // 0.001, 0.002, ..., 0.999

inline double ConformalScoreOf(double probability_of_label) { return 1 - probability_of_label; }
// `variance` above 0; a variance of 0 scores infinity, but an error of 0 scores 0.
double ConformalScoreOf(double target, double mean, double variance);

// Returns the largest error of a row of this variance whose score is at most `threshold`.
double ConformalHalfWidth(double threshold, double variance);

// Returns the thresholds at all levels; infinite at a level that needs more calibration rows. NaN scores count as
// infinite.
std::vector<double> ConformalThresholds(std::vector<double> scores);

// Returns the threshold at the nearest level that is at least `level`. REQUIRES: 0 < level <= 0.999; `thresholds` of
// ConformalThresholds.
double ConformalThreshold(std::span<const double> thresholds, double level);

}  // namespace chainfleet
