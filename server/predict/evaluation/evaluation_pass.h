// One pass of an evaluation over a data set, and what it gathers from the rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/corruption.h"
#include "core/domain/prediction.h"
#include "server/predict/evaluation/chain_densities.h"
#include "server/predict/evaluation/non_finite_rows.h"
#include "server/predict/evaluation/score_curve.h"
#include "server/predict/evaluation/scored_rows.h"

namespace chainfleet {

// Not thread-safe.
struct EvaluationPass {
  Dataset dataset;
  bool labelled = true;  // reads its labels or targets
  std::optional<Corruption> corruption = {};
  NonFiniteRows non_finite = {};
  std::optional<ScoredRows> rows = {};
  std::optional<ScoreCurve> curve = {};
  std::optional<ChainDensities> densities = {};  // stacking rows have them in place of scores

  // Asks for these rows, and for the outputs of single draws that the pass needs.
  void SetRows(const RowBlock& block, const Targets& learned, ShardRequest* request) const;
  void Add(const RowBlock& block, const std::vector<PartialPrediction>& partials);
  // FAILED_PRECONDITION / NOT_FINITE, see NonFiniteRows.
  absl::Status CheckFinite() const;
};

}  // namespace chainfleet
