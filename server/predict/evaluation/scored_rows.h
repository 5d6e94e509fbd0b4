// The scored rows of one data set: averages of each kind and of all kinds, and sums over single draws.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/domain/evaluation.h"
#include "core/domain/prediction.h"
#include "server/predict/serving/fan_out.h"
#include "server/predict/sums/chain_shares.h"

namespace chainfleet {

struct NumberRows {
  std::vector<double> mean;          // [n]
  std::vector<double> variance;      // [n] aleatoric and epistemic
  std::vector<double> log_density;   // [n] at the target
  std::vector<double> distribution;  // [n] at the target, 0..1
};

struct ClassRows {
  std::vector<double> mean_probability;    // [n, K]; empty for a data set that only gives inputs
  std::vector<double> predictive_entropy;  // [n]
  std::vector<double> mutual_information;  // [n]
};

// The average over the draws of some kinds, filled block by block. Either all draws count alike, or chains by `shares`.
struct PosteriorRows {
  std::string what;  // as Scores::what
  std::vector<DrawKind> kinds;
  ChainShares shares = {};
  std::variant<NumberRows, ClassRows> rows = {};
  int64_t draws_used = -1;  // fewest of any block; -1 before the first

  // REQUIRES: a job that learns classes.
  const ClassRows& classes() const { return std::get<ClassRows>(rows); }
};

// Sums over the single draws of one kind, weighted, and over rows.
struct SingleDraws {
  DrawKind kind = DrawKind::kTheta;
  int64_t num_draws = 0;     // most of any block
  double weighted_rows = 0;  // the sum of weights times rows
  double log_likelihood = 0;
  double hits = 0, brier = 0, entropy = 0;  // for classes
  double squared_error = 0;                 // for numbers

  void Add(const SingleDraws& other);
};

// Not thread-safe.
class ScoredRows {
 public:
  // `targets` [n] are of the sort that the job has `learned`; none for a data set that only gives inputs (out of
  // distribution). `weights`: of the chains, for one more average by each of their two weights; may be empty.
  ScoredRows(const std::vector<DrawKind>& kinds, int64_t num_rows, const Targets& learned,
             std::optional<TargetValues> targets, const std::vector<ChainWeight>& weights = {});

  // Takes each row once, blocks in any order; `partials` as FanOut delivers them, compared with the targets if there
  // are any.
  void Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials);

  // The fewest steps averaged for any row, without the weighted averages; 0 if a block had none.
  int64_t draws_used() const;
  const std::vector<PosteriorRows>& posteriors() const { return posteriors_; }
  std::vector<SingleDraws> Singles() const;  // each kind
  // REQUIRES: there are targets; labels.
  const TargetValues& targets() const { return *targets_; }
  const std::vector<int32_t>& labels() const { return std::get<std::vector<int32_t>>(*targets_); }
  int64_t num_classes() const { return num_classes_; }

 private:
  void AddToPosterior(const RowBlock& rows, const std::vector<const PartialPrediction*>& partials,
                      PosteriorRows* posterior) const;

  const std::vector<DrawKind> kinds_;
  const int64_t num_classes_;
  const std::optional<TargetValues> targets_;
  std::vector<PosteriorRows> posteriors_;  // each kind, the weighted ones, then all
  // By kind, then first row: summed in row order in whatever order blocks came, so that the bits are the same.
  std::map<DrawKind, std::map<int64_t, SingleDraws>> singles_;
};

// The functions below REQUIRE `rows` with targets, those without numbers also labels.

// Scores of the average over the draws of all kinds; of numbers too.
Scores ScoreAll(const ScoredRows& rows, int ece_bins);

// The score table, in the order of Scores::what; of numbers too. `ood` may be null; it has the same kinds as `rows`.
// core/scores defines the scores of NaN rows.
std::vector<Scores> ScoreTable(const ScoredRows& rows, const ScoredRows* ood, int ece_bins);

// The `count` rows with the lowest predictive entropy of "all", lowest first, then `count` with the highest, highest
// first. Ties are in row order, no row appears twice, rows with NaN entropy are left out.
std::vector<ExampleRow> ExampleRows(const ScoredRows& rows, int64_t count);

// One more table row for each average, calibrated by the temperature that fits `held_out` best. REQUIRES: both have
// the same kinds.
std::vector<Scores> CalibratedScores(const ScoredRows& rows, const ScoredRows& held_out, int ece_bins);

}  // namespace chainfleet
