// Quantiles of each row's predictive mixture in a regression, and their Monte Carlo errors.
#pragma once

#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// [n, Q]: quantiles of each row's mixture over all draws of `partials`, which have the members of float32 targets.
std::vector<double> MixtureQuantiles(const std::vector<const PartialPrediction*>& partials,
                                     const std::vector<double>& levels);

// [n, Q]: the Monte Carlo standard error of each of `quantiles`, which are MixtureQuantiles(partials, levels), by the
// delta method of core/scores/mixture.h. The share of the mixture below a quantile is a mean over draws, as the scores
// are, so its error is computed like theirs: with empty `parts` by server/predict/sums/aggregator.h; else by
// server/predict/sums/batch_means.h from the parts of the only chain, which sum to `partials`. Empty where that error
// is unknown; NaN for a quantile at which the mixture has no density.
std::vector<double> MixtureQuantileErrors(const std::vector<const PartialPrediction*>& partials,
                                          const std::vector<PartialPrediction>& parts,
                                          const std::vector<double>& levels, const std::vector<double>& quantiles);

}  // namespace chainfleet
