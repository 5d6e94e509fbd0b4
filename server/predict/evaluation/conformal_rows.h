// Conformal sets and intervals of an evaluation's average over all kinds.
#pragma once

#include <vector>

#include "core/domain/evaluation.h"
#include "server/predict/evaluation/scored_rows.h"

namespace chainfleet {

// Returns the thresholds of "all" at all levels, from the rows held out. REQUIRES: `held_out` has targets.
std::vector<double> ConformalThresholdsOf(const ScoredRows& held_out);

// Scores the sets or intervals at the levels 0.5, 0.8, 0.9, 0.95 and 0.99 on `rows`. REQUIRES: `rows` has targets.
std::vector<ConformalScore> ScoreConformal(const ScoredRows& rows, const std::vector<double>& thresholds);

}  // namespace chainfleet
