// What an evaluation of a job against stored data sets says. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chainfleet {

// One row of the table. A score that does not exist for the row is NaN or unset.
struct Scores {
  // "single theta", "single theta_a" (means over single draws), "theta", "theta_a", "all", then, if asked for,
  // "calibrated theta", "calibrated theta_a", "calibrated all"
  std::string what;
  int64_t num_draws = 0;      // networks: theta and theta_a of one step are two
  double accuracy = 0;        // 0..1
  double nll = 0;             // mean over rows, nats
  double brier = 0;           // mean over rows, 0..2
  double ece = 0;             // equal-width bins; NaN for single draws
  double ece_equal_mass = 0;  // NaN for single draws
  double mean_predictive_entropy = 0;
  double mean_mutual_information = 0;  // NaN for calibrated averages
  std::optional<double> ood_auroc;     // by predictive entropy, the shifted set positive
  std::optional<double> ood_auroc_mutual_information;
  std::optional<double> ood_mean_predictive_entropy;
  // Of float32 targets, for which the scores of classes are NaN.
  std::optional<double> rmse;         // of the mean; of single draws the root of their mean square
  std::optional<double> coverage_90;  // targets within the central 90 % of the predictive distribution, 0..1
  std::optional<double> temperature;  // of calibrated averages: core/scores/temperature.h
};

struct Evaluation {
  std::string job;  // id
  int64_t version = 0;
  std::string point;                                      // of a sweep, by name
  std::string dataset, ood_dataset, calibration_dataset;  // the last two may be empty
  int64_t num_rows = 0;
  int64_t num_ood_rows = 0;
  int64_t num_calibration_rows = 0;
  int64_t draws_used = 0;  // the fewest that any row rests on
  int64_t draws_in_version = 0;
  std::vector<Scores> scores;  // in the order of Scores::what, kinds the job lacks left out
};

// Rows whose draws are averaged, of all data sets.
struct EvaluationProgress {
  int64_t rows_done = 0;
  int64_t rows_total = 0;
};

}  // namespace chainfleet
