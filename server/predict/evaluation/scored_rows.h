// The rows of one data set as an evaluation sees them: averages of each kind and of all, and sums over single draws.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/domain/evaluation.h"
#include "core/domain/prediction.h"
#include "server/predict/serving/fan_out.h"

namespace chainfleet {

// The average over the draws of some kinds, filled block by block.
struct PosteriorRows {
  std::string what;  // as Scores::what
  std::vector<DrawKind> kinds;
  int64_t draws_used = -1;                      // fewest of any block; -1 before the first
  std::vector<double> mean_probability = {};    // [n, K]
  std::vector<double> predictive_entropy = {};  // [n]
  std::vector<double> mutual_information = {};  // [n]
};

// Sums over the single draws of one kind, by their weights, and over rows.
struct SingleDraws {
  DrawKind kind = DrawKind::kTheta;
  int64_t num_draws = 0;     // most of any block
  double weighted_rows = 0;  // the sum of weights times rows
  double log_likelihood = 0, hits = 0, brier = 0, entropy = 0;

  void Add(const SingleDraws& other);
};

// Not thread-safe.
class ScoredRows {
 public:
  // `labels` [n] are kept; empty for a data set that only lends its inputs (out of distribution).
  ScoredRows(const std::vector<DrawKind>& kinds, int64_t num_rows, int64_t num_classes, std::vector<int32_t> labels);

  // Blocks in any order, each row once; `partials` as FanOut delivers them, with per-draw scores if there are labels.
  void Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials);

  // The fewest steps that any row rests on; 0 if a block had none.
  int64_t draws_used() const;
  const std::vector<PosteriorRows>& posteriors() const { return posteriors_; }
  std::vector<SingleDraws> Singles() const;  // each kind
  const std::vector<int32_t>& labels() const { return labels_; }
  int64_t num_classes() const { return num_classes_; }

 private:
  void AddToPosterior(const RowBlock& rows, const std::vector<const PartialPrediction*>& partials,
                      PosteriorRows* posterior) const;
  SingleDraws SumSingles(const RowBlock& rows, const PartialPrediction& partial) const;

  const std::vector<DrawKind> kinds_;
  const int64_t num_classes_;
  const std::vector<int32_t> labels_;
  std::vector<PosteriorRows> posteriors_;  // each kind, then all
  // By kind, then first row: summed in row order whatever came first, so that the bits are the same.
  std::map<DrawKind, std::map<int64_t, SingleDraws>> singles_;
};

// The average over the draws of all kinds; `rows` have labels.
Scores ScoreAll(const ScoredRows& rows, int ece_bins);

// The `count` rows of lowest predictive entropy of "all", the lowest first, then as many of highest, the highest first;
// equals in row order, no row twice, none whose entropy is NaN. `rows` have labels.
std::vector<ExampleRow> ExampleRows(const ScoredRows& rows, int64_t count);

// The table, in the order of Scores::what. `ood` may be null; it has the same kinds. Scores of rows that are NaN are
// what core/scores says of them.
std::vector<Scores> ScoreTable(const ScoredRows& rows, const ScoredRows* ood, int ece_bins);

// A further row for each average, calibrated by the temperature that fits `held_out` best. Both have labels and the
// same kinds.
std::vector<Scores> CalibratedScores(const ScoredRows& rows, const ScoredRows& held_out, int ece_bins);

}  // namespace chainfleet
