// Standard errors of what correlated draws estimate (Vehtari et al., Bayesian Analysis 16 (2021), section 4.3 and
// appendix A). In units of the quantity; equal to ArviZ' mcse(). NaN for traces that are not Usable.
#pragma once

#include "core/diagnostics/traces.h"

namespace chainfleet {

// Error of the mean of all draws: their standard deviation over the root of EssMean.
double McseMean(Traces traces);

// Error of the standard deviation of all draws, by the delta method; NaN for a quantity that never changes.
double McseSd(Traces traces);

// Error of the `probability` quantile, 0 < probability < 1: half the width between the order statistics one normal
// standard deviation to either side, found from a Beta law with EssQuantile draws.
double McseQuantile(Traces traces, double probability);

// x with I_x(a, b) = `probability`, the regularised incomplete beta function; a, b >= 1, to an absolute 1e-14.
double BetaQuantile(double probability, double a, double b);

}  // namespace chainfleet
