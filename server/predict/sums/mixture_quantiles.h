// Quantiles of what the draws of a regression say of each row, and how well so many draws tell them.
#pragma once

#include <vector>

#include "core/domain/prediction.h"

namespace chainfleet {

// [n, Q]: of each row's mixture over all draws of `partials`, which have the members of float32 targets.
std::vector<double> MixtureQuantiles(const std::vector<const PartialPrediction*>& partials,
                                     const std::vector<double>& levels);

// [n, Q]: the Monte Carlo standard error of each of `quantiles`, which are MixtureQuantiles(partials, levels), by the
// delta method of core/scores/mixture.h. The share of the mixture below a quantile is a mean over draws as the scores
// are, so its error is theirs: `parts` empty, that of server/predict/sums/aggregator.h; else the parts of the only
// chain, which `partials` are summed from, and that of server/predict/sums/batch_means.h. Empty where those know none;
// NaN for a quantile where the mixture has no density.
std::vector<double> MixtureQuantileErrors(const std::vector<const PartialPrediction*>& partials,
                                          const std::vector<PartialPrediction>& parts,
                                          const std::vector<double>& levels, const std::vector<double>& quantiles);

}  // namespace chainfleet
