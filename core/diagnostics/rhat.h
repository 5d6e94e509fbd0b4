// Tells whether chains agree: rank-normalised potential scale reduction (Vehtari et al., Bayesian Analysis 16 (2021)).
#pragma once

#include "core/diagnostics/traces.h"

namespace chainfleet {

// Returns the larger of two split R-hats, sqrt((B/W + n - 1) / n) with n draws in each half chain: one of the draws'
// normal scores (chains in different places), one of their distances from the median (chains of different widths). 1
// when chains agree; trust draws below 1.01. Equal to ArviZ' rhat(method="rank"): NaN for one chain, for traces that
// are not Usable and for a constant quantity; infinite if each half chain is constant at a different value.
double Rhat(Traces traces);

}  // namespace chainfleet
