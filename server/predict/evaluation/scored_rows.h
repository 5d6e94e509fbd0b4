// The scored rows of one data set: averages of each kind and of all kinds, and sums over single draws.
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

// Sums over the single draws of one kind, weighted, and over rows.
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
  // `labels` has shape [n]; it is empty for a data set that only gives inputs (out of distribution).
  ScoredRows(const std::vector<DrawKind>& kinds, int64_t num_rows, int64_t num_classes, std::vector<int32_t> labels);

  // Takes each row once, blocks in any order; `partials` as FanOut delivers them, with per-draw scores if there are
  // labels.
  void Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials);

  // The fewest steps averaged for any row; 0 if a block had none.
  int64_t draws_used() const;
  const std::vector<PosteriorRows>& posteriors() const { return posteriors_; }
  std::vector<SingleDraws> Singles() const;  // each kind
  const std::vector<int32_t>& targets() const { return labels_; }
  int64_t num_classes() const { return num_classes_; }

 private:
  void AddToPosterior(const RowBlock& rows, const std::vector<const PartialPrediction*>& partials,
                      PosteriorRows* posterior) const;
  SingleDraws SumSingles(const RowBlock& rows, const PartialPrediction& partial) const;

  const std::vector<DrawKind> kinds_;
  const int64_t num_classes_;
  const std::vector<int32_t> labels_;
  std::vector<PosteriorRows> posteriors_;  // each kind, then all
  // By kind, then first row: summed in row order in whatever order blocks came, so that the bits are the same.
  std::map<DrawKind, std::map<int64_t, SingleDraws>> singles_;
};

// Scores of the average over the draws of all kinds. REQUIRES: `rows` have labels.
Scores ScoreAll(const ScoredRows& rows, int ece_bins);

// The `count` rows with the lowest predictive entropy of "all", lowest first, then `count` with the highest, highest
// first. Ties are in row order, no row appears twice, rows with NaN entropy are left out. REQUIRES: `rows` have labels.
std::vector<ExampleRow> ExampleRows(const ScoredRows& rows, int64_t count);

// The score table, in the order of Scores::what. `ood` may be null; it has the same kinds as `rows`. core/scores
// defines the scores of NaN rows.
std::vector<Scores> ScoreTable(const ScoredRows& rows, const ScoredRows* ood, int ece_bins);

// One more table row for each average, calibrated by the temperature that fits `held_out` best. REQUIRES: both have
// labels and the same kinds.
std::vector<Scores> CalibratedScores(const ScoredRows& rows, const ScoredRows& held_out, int ece_bins);

}  // namespace chainfleet
