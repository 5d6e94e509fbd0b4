// Standard errors of estimates from correlated draws (Vehtari et al., Bayesian Analysis 16 (2021), section 4.3 and
// appendix A). In units of the quantity; equal to ArviZ' mcse(). NaN for traces that are not Usable.
#pragma once

#include "core/diagnostics/traces.h"

namespace chainfleet {

// Returns the error of the mean of all draws: their standard deviation over the root of EssMean.
double McseMean(Traces traces);

// Returns the error of the standard deviation of all draws, by the delta method; NaN if the quantity never changes.
double McseSd(Traces traces);

// Returns the error of the `probability` quantile, 0 < probability < 1: half the distance between the order statistics
// one normal standard deviation below and above, from a Beta law with EssQuantile draws.
double McseQuantile(Traces traces, double probability);

// Returns x with I_x(a, b) = `probability`, the regularised incomplete beta function, to 1e-14. REQUIRES: a, b >= 1.
double BetaQuantile(double probability, double a, double b);

}  // namespace chainfleet
