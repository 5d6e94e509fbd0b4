// The number of independent draws that correlated draws are worth. Effective sample sizes over all chains, from
// autocovariances cut off by Geyer's initial monotone sequence (Geyer 1992; Vehtari et al., Bayesian Analysis 16
// (2021), eq. 10-13).
//
// Equal to ArviZ' ess() of the same name: of split chains, so that chains which disagree count for little; at most
// S log10 S for S draws in all; S for a quantity that never changes; NaN for traces that are not Usable.
#pragma once

#include "core/diagnostics/traces.h"

namespace chainfleet {

// For the mean of the quantity.
double EssMean(Traces traces);

// For the centre of the distribution, of rank-normalised draws: exists without moments.
double EssBulk(Traces traces);

// For the estimate of the `probability` quantile, 0..1: of the indicators of draws at or below it.
double EssQuantile(Traces traces, double probability);

// The smaller one of the 5 % and the 95 % quantile.
double EssTail(Traces traces);

}  // namespace chainfleet
