// Histograms of a score over two sets of rows, and how far apart they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

// Rows of `values` per bin, of `num_bins` >= 1 equal bins over [0, top], top > 0: bin b holds [b, b+1) top / num_bins,
// the last one top as well. What lies outside by rounding counts in the nearest bin, NaN in none.
std::vector<int64_t> Histogram(std::span<const double> values, double top, int num_bins);

// KL(p | q) + KL(q | p) = sum (p - q) log(p / q), nats (Kullback & Leibler 1951; of entropies inside and outside the
// training classes in SWAG, Maddox et al. 2019, Table 1). p and q are the shares of rows per bin with half a row added
// to every bin of both, so that an empty bin makes no infinity. Both have the same bins, at least one.
double SymmetrisedDivergence(std::span<const int64_t> first, std::span<const int64_t> second);

}  // namespace chainfleet
