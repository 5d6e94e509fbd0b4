// scored_rows.h for float32 targets: averages of each kind and of all kinds, and sums over single draws.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/domain/evaluation.h"
#include "core/domain/prediction.h"
#include "server/predict/serving/fan_out.h"

namespace chainfleet {

// The mixture over the draws of some kinds, filled block by block.
struct NumberRows {
  std::string what;  // as Scores::what
  std::vector<DrawKind> kinds;
  int64_t draws_used = -1;                // fewest of any block; -1 before the first
  std::vector<double> mean = {};          // [n]
  std::vector<double> log_density = {};   // [n] at the target
  std::vector<double> distribution = {};  // [n] at the target, 0..1
};

// Not thread-safe.
class ScoredNumbers {
 public:
  // `targets` has shape [n].
  ScoredNumbers(const std::vector<DrawKind>& kinds, std::vector<float> targets);

  // Takes each row once, blocks in any order; `partials` as FanOut delivers them, compared with the targets.
  void Add(const RowBlock& rows, const std::vector<PartialPrediction>& partials);

  // The fewest steps averaged for any row; 0 if a block had none.
  int64_t draws_used() const;

  const std::vector<float>& targets() const { return targets_; }

  // In the order of Scores::what.
  std::vector<Scores> Table() const;

 private:
  // Sums over single draws and rows, as SingleDraws of scored_rows.h.
  struct Singles {
    int64_t num_draws = 0;
    double weighted_rows = 0, log_likelihood = 0, squared_error = 0;
  };
  void AddToPosterior(const RowBlock& rows, const std::vector<const PartialPrediction*>& partials,
                      NumberRows* posterior) const;
  void AddToSingles(const RowBlock& rows, const PartialPrediction& partial);
  Scores ScoreSingles(DrawKind kind) const;
  Scores ScorePosterior(const NumberRows& posterior) const;

  const std::vector<DrawKind> kinds_;
  const std::vector<float> targets_;
  std::vector<NumberRows> posteriors_;  // each kind, then all
  // By kind, then first row: summed in row order in whatever order blocks came, so that the bits are the same.
  std::map<DrawKind, std::map<int64_t, Singles>> singles_;
};

}  // namespace chainfleet
