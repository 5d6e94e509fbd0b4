// The result of an evaluation of a job against stored data sets. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/domain/flatness.h"

namespace chainfleet {

// The rows whose largest mean probability is in (lower, upper].
struct CalibrationBin {
  double lower = 0, upper = 0;
  int64_t count = 0;
  double mean_confidence = 0, accuracy = 0;  // 0 when the bin is empty
  static void Fields(auto& self, auto&& visit) {
    visit("lower", self.lower);
    visit("upper", self.upper);
    visit("count", self.count);
    visit("mean_confidence", self.mean_confidence);
    visit("accuracy", self.accuracy);
  }
};

// One line of the table. A score that does not exist for the line is NaN or unset.
struct Scores {
  // "single theta", "single theta_a" (means over single draws), "theta", "theta_a", "stacked", "pseudo-BMA", "all",
  // then "calibrated " and each of these averages. The weighted and the calibrated ones only if requested.
  std::string what;
  int64_t num_draws = 0;      // networks: theta and theta_a of one step count as two
  double accuracy = 0;        // 0..1
  double nll = 0;             // mean over rows, nats
  double brier = 0;           // mean over rows, 0..2
  double ece = 0;             // equal-width bins; NaN for single draws
  double ece_equal_mass = 0;  // NaN for single draws
  double mean_predictive_entropy = 0;
  double mean_mutual_information = 0;  // NaN for calibrated averages
  std::optional<double> ood_auroc;     // by predictive entropy; rows of the shifted set are positive
  std::optional<double> ood_auroc_mutual_information;
  std::optional<double> ood_mean_predictive_entropy;
  // For float32 targets only; the class scores are NaN then.
  std::optional<double> rmse;         // error of the mean; for single draws the root of their mean square
  std::optional<double> coverage_90;  // share of targets within the central 90 % of the predictive distribution, 0..1
  std::optional<double> temperature;  // calibrated averages only: core/scores/temperature.h
  // By predictive entropy; wrongly classified rows are positive.
  std::optional<double> misclassification_auroc, misclassification_aupr;
  std::optional<double> ood_aupr;  // by predictive entropy, as ood_auroc
  // For averages only; empty for other lines.
  std::vector<CalibrationBin> reliability;  // equal width
  std::vector<int64_t> entropy_histogram;   // counts of rows by predictive entropy, bins of equal width over [0, log K]
  std::vector<int64_t> ood_entropy_histogram;
  std::optional<double> entropy_divergence;  // symmetrised KL between the two histograms (SWAG, Table 1), nats
  static void Fields(auto& self, auto&& visit) {
    visit("what", self.what);
    visit("num_draws", self.num_draws);
    visit("accuracy", self.accuracy);
    visit("nll", self.nll);
    visit("brier", self.brier);
    visit("ece", self.ece);
    visit("ece_equal_mass", self.ece_equal_mass);
    visit("mean_predictive_entropy", self.mean_predictive_entropy);
    visit("mean_mutual_information", self.mean_mutual_information);
    visit("ood_auroc", self.ood_auroc);
    visit("ood_auroc_mutual_information", self.ood_auroc_mutual_information);
    visit("ood_mean_predictive_entropy", self.ood_mean_predictive_entropy);
    visit("rmse", self.rmse);
    visit("coverage_90", self.coverage_90);
    visit("temperature", self.temperature);
    visit("misclassification_auroc", self.misclassification_auroc);
    visit("misclassification_aupr", self.misclassification_aupr);
    visit("ood_aupr", self.ood_aupr);
    visit("reliability", self.reliability);
    visit("entropy_histogram", self.entropy_histogram);
    visit("ood_entropy_histogram", self.ood_entropy_histogram);
    visit("entropy_divergence", self.entropy_divergence);
  }
};

// Scores of the average over the first draws of each chain, `num_draws` in all.
struct CurvePoint {
  int64_t num_draws = 0;  // steps
  double accuracy = 0, nll = 0, ece = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("num_draws", self.num_draws);
    visit("accuracy", self.accuracy);
    visit("nll", self.nll);
    visit("ece", self.ece);
  }
};

// Scores of the average "all" on corrupted rows.
struct CorruptedScores {
  std::string corruption;
  int32_t severity = 1;
  Scores scores;
  static void Fields(auto& self, auto&& visit) {
    visit("corruption", self.corruption);
    visit("severity", self.severity);
    visit("scores", self.scores);
  }
};

// An example, ranked by the predictive entropy of "all".
struct ExampleRow {
  int64_t row = 0;
  int32_t label = 0, predicted = 0;
  double max_probability = 0, predictive_entropy = 0, mutual_information = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("row", self.row);
    visit("label", self.label);
    visit("predicted", self.predicted);
    visit("max_probability", self.max_probability);
    visit("predictive_entropy", self.predictive_entropy);
    visit("mutual_information", self.mutual_information);
  }
};

// Weights of a chain in the average over chains; each sums to 1 (core/scores/stacking.h).
struct ChainWeight {
  ChainId chain;
  double stacking = 0, pseudo_bma = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("stacking", self.stacking);
    visit("pseudo_bma", self.pseudo_bma);
  }
};

// Conformal sets or intervals of the average "all" on the scored rows (core/scores/conformal.h).
struct ConformalScore {
  double level = 0, threshold = 0;
  double coverage = 0;   // share of the rows whose label or target they hold, 0..1
  double mean_size = 0;  // classes of a set, or width of an interval
  static void Fields(auto& self, auto&& visit) {
    visit("level", self.level);
    visit("threshold", self.threshold);
    visit("coverage", self.coverage);
    visit("mean_size", self.mean_size);
  }
};

struct Evaluation {
  std::string job;  // job id
  int64_t version = 0;
  std::string point;                                                        // sweep point, by name
  std::string dataset, ood_dataset, calibration_dataset, stacking_dataset;  // the last three may be empty
  int64_t num_rows = 0;
  int64_t num_ood_rows = 0;
  int64_t num_calibration_rows = 0;
  int64_t num_stacking_rows = 0;
  int64_t draws_used = 0;  // the fewest draws behind any row
  int64_t draws_in_version = 0;
  std::vector<Scores> scores;  // in the order of Scores::what, without kinds that the job lacks
  // Only if requested:
  std::vector<CurvePoint> curve;  // num_draws rises
  std::vector<CorruptedScores> corrupted;
  std::vector<Flatness> flatness;    // one for each chain
  std::vector<ExampleRow> examples;  // the most certain rows first, then the least certain
  std::vector<ChainWeight> weights;  // one for each chain
  std::vector<ConformalScore> conformal;
  std::vector<double> conformal_thresholds;  // at levels 0.001, 0.002, ..., 0.999
  static void Fields(auto& self, auto&& visit) {
    visit("job_id", self.job);
    visit("version", self.version);
    visit("point", self.point);
    visit("dataset", self.dataset);
    visit("ood_dataset", self.ood_dataset);
    visit("calibration_dataset", self.calibration_dataset);
    visit("num_rows", self.num_rows);
    visit("num_ood_rows", self.num_ood_rows);
    visit("num_calibration_rows", self.num_calibration_rows);
    visit("stacking_dataset", self.stacking_dataset);
    visit("num_stacking_rows", self.num_stacking_rows);
    visit("draws_used", self.draws_used);
    visit("draws_in_version", self.draws_in_version);
    visit("scores", self.scores);
    visit("curve", self.curve);
    visit("corrupted", self.corrupted);
    visit("flatness", self.flatness);
    visit("examples", self.examples);
    visit("weights", self.weights);
    visit("conformal", self.conformal);
    visit("conformal_thresholds", self.conformal_thresholds);
  }
};

// Progress in rows whose draws are averaged, over all data sets.
struct EvaluationProgress {
  int64_t rows_done = 0;
  int64_t rows_total = 0;
};

}  // namespace chainfleet
