// Do chains agree? Potential scale reduction, rank-normalised (Vehtari et al., Bayesian Analysis 16 (2021)).
#pragma once

#include "core/diagnostics/traces.h"

namespace chainfleet {

// The larger of two split R-hats, sqrt((B/W + n - 1) / n) with n draws in each half chain: of the normal scores of the
// draws (chains that sit in different places), and of their distances from the median (chains of different widths).
// 1 when chains agree; trust draws below 1.01. Equal to ArviZ' rhat(method="rank"): NaN for one chain, for traces that
// are not Usable and for a quantity that never changes; infinite when each half chain stands still elsewhere.
double Rhat(Traces traces);

}  // namespace chainfleet
