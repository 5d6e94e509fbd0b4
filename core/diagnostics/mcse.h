// The standard error of an estimate from correlated draws (Vehtari et al., Bayesian Analysis 16 (2021), section 4.3).
// In units of the quantity; equal to ArviZ' mcse(). NaN for traces that are not Usable.
#pragma once

#include "core/diagnostics/traces.h"

namespace chainfleet {

// Returns the error of the mean of all draws: their standard deviation over the root of EssMean.
double McseMean(Traces traces);

}  // namespace chainfleet
