// Calibration of confidences: reliability bins, and the expected calibration error over the bins (Guo et al. 2017).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chainfleet {

// kEqualWidth: bin b of B holds confidences in (b/B, (b+1)/B]; the first bin also holds 0. kEqualMass: rows sorted by
// confidence are cut into B groups of equal size. Equal confidences stay in one group, so groups may differ in size or
// be fewer.
enum class Binning { kEqualWidth, kEqualMass };

struct ReliabilityBin {
  double lower = 0, upper = 0;  // equal width: the edges; equal mass: smallest and largest confidence inside
  int64_t count = 0;
  double mean_confidence = 0, accuracy = 0;  // 0 when the bin is empty
};

// `confidence` [n] in [0, 1], `correct` [n], `num_bins` >= 1. Equal width returns all bins, equal mass the non-empty
// bins. A confidence outside [0, 1] counts in the nearest bin of equal width; a NaN counts in no bin, so that the
// counts add up to the rows with a confidence.
std::vector<ReliabilityBin> ReliabilityBins(std::span<const double> confidence, const std::vector<bool>& correct,
                                            int num_bins, Binning binning);

// Returns the sum over bins of count / n |accuracy - mean confidence|, n: all rows in the bins. 0 for n = 0.
double ExpectedCalibrationError(const std::vector<ReliabilityBin>& bins);

}  // namespace chainfleet
