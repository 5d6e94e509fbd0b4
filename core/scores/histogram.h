// Histograms of a score over two sets of rows, and the divergence between the histograms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

// Counts the rows of `values` in `num_bins` >= 1 equal bins over [0, top], top > 0. Bin b holds [b, b+1) top /
// num_bins; the last bin also holds top. Values outside by rounding count in the nearest bin, NaN in no bin.
std::vector<int64_t> Histogram(std::span<const double> values, double top, int num_bins);

// Returns KL(p | q) + KL(q | p) = sum (p - q) log(p / q), nats (Kullback & Leibler 1951; SWAG, Maddox et al. 2019,
// Table 1, for entropies inside and outside the training classes). p and q are the shares of rows in each bin, with
// half a row added to every bin, so that no empty bin gives infinity. REQUIRES: both have the same bins, at least one.
double SymmetrisedDivergence(std::span<const int64_t> first, std::span<const int64_t> second);

}  // namespace chainfleet
