// Tells whether chains agree: rank-normalised potential scale reduction (Vehtari et al., Bayesian Analysis 16 (2021)),
// and its nested form for many short chains.
#pragma once

#include <cstdint>
#include <span>

#include "core/diagnostics/traces.h"

namespace chainfleet {

// Returns the larger of two split R-hats, sqrt((B/W + n - 1) / n) with n draws in each half chain: one of the draws'
// normal scores (chains in different places), one of their distances from the median (chains of different widths). 1
// when chains agree; trust draws below 1.01. Equal to ArviZ' rhat(method="rank"): NaN for one chain, for traces that
// are not Usable, for a constant quantity and if the median is infinite; infinite if each half chain is constant at a
// different value.
double Rhat(Traces traces);

// Nested R-hat of K superchains, each with M chains that started at the same point:
//
//   sqrt(1 + B / W),  B: variance of the K means of superchains,
//                     W: mean over superchains of (variance of the M means of chains + mean variance within a chain).
//
// The variance of the M means counts what short chains have not averaged yet as noise, so that B shows only what is
// left of the starts: R-hat of short chains is large also when they have forgotten their starts. The result is 1 or
// more. One chain of a superchain, or one draw of a chain, has no variance; that term is 0. Source: Margossian et al.,
// Nested R-hat, Bayesian Analysis (2024), equations 4 to 8. Equal to rhat_nested of the R package posterior: values are
// not ranked and chains not split. NaN for one superchain, without draws, with a NaN and for a constant quantity;
// infinite if each superchain is constant at another value.
//
// Chain c belongs to superchain superchains[c]. M is the size of the smallest superchain; only the first M chains of a
// larger one count. REQUIRES: one label for each chain.
double NestedRhat(Traces traces, std::span<const int64_t> superchains);

}  // namespace chainfleet
