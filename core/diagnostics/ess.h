// Effective sample sizes over all chains: the number of independent draws that estimate as well as the correlated
// draws. Computed from autocovariances cut off by Geyer's initial monotone sequence (Geyer 1992; Vehtari et al.,
// Bayesian Analysis 16 (2021), eq. 10-13).
//
// Equal to ArviZ' ess() of the same name. Chains are split, so that chains which disagree count for little. At most S
// log10 S for S draws in all; S for a quantity that never changes; NaN for traces that are not Usable.
#pragma once

#include "core/diagnostics/traces.h"

namespace chainfleet {

// Returns the ESS for the mean of the quantity.
double EssMean(Traces traces);

// Returns the ESS for the centre of the distribution, from rank-normalised draws. Exists without moments.
double EssBulk(Traces traces);

// Returns the ESS for the `probability` quantile, 0..1, from the indicators of draws at or below the quantile.
double EssQuantile(Traces traces, double probability);

// Returns the smaller ESS of the 5 % and the 95 % quantile.
double EssTail(Traces traces);

}  // namespace chainfleet
