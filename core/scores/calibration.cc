#include "core/scores/calibration.h"

#include <algorithm>
#include <cmath>

namespace chainfleet {
namespace {

// Sums rows as they come in; the means follow at the end.
class BinSums {
 public:
  explicit BinSums(ReliabilityBin bin = {}) : bin_(bin) {}
  void Add(double confidence, bool correct) {
    ++bin_.count;
    bin_.mean_confidence += confidence;
    bin_.accuracy += correct ? 1 : 0;
  }
  ReliabilityBin Means() const {
    ReliabilityBin bin = bin_;
    if (bin.count > 0) {
      bin.mean_confidence /= static_cast<double>(bin.count);
      bin.accuracy /= static_cast<double>(bin.count);
    }
    return bin;
  }

 private:
  ReliabilityBin bin_;
};

std::vector<ReliabilityBin> EqualWidth(std::span<const double> confidence, const std::vector<bool>& correct,
                                       int num_bins) {
  std::vector<BinSums> sums;
  for (int b = 0; b < num_bins; ++b) {
    sums.emplace_back(
        ReliabilityBin{.lower = static_cast<double>(b) / num_bins, .upper = static_cast<double>(b + 1) / num_bins});
  }
  for (size_t i = 0; i < confidence.size(); ++i) {
    if (std::isnan(confidence[i])) continue;
    // Clamps before the conversion to an integer, because infinity has no integer.
    int b = static_cast<int>(std::clamp(std::ceil(confidence[i] * num_bins) - 1, 0.0, num_bins - 1.0));
    // The product is rounded, so the stated edges decide.
    if (b > 0 && confidence[i] <= static_cast<double>(b) / num_bins) --b;
    if (b + 1 < num_bins && confidence[i] > static_cast<double>(b + 1) / num_bins) ++b;
    sums[b].Add(confidence[i], correct[i]);
  }
  std::vector<ReliabilityBin> bins;
  for (const BinSums& s : sums) bins.push_back(s.Means());
  return bins;
}

std::vector<ReliabilityBin> EqualMass(std::span<const double> confidence, const std::vector<bool>& correct,
                                      int num_bins) {
  std::vector<size_t> order;
  order.reserve(confidence.size());
  for (size_t i = 0; i < confidence.size(); ++i) {
    if (!std::isnan(confidence[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return confidence[a] < confidence[b]; });
  std::vector<ReliabilityBin> bins;
  for (size_t begin = 0, group = 0; begin < order.size();) {
    // Moves to the next cut ahead (a run of ties may have passed some), then on while the confidence stays the same.
    size_t end = begin;
    while (end <= begin) end = order.size() * ++group / num_bins;
    while (end < order.size() && confidence[order[end]] == confidence[order[end - 1]]) ++end;
    BinSums sums({.lower = confidence[order[begin]], .upper = confidence[order[end - 1]]});
    for (size_t i = begin; i < end; ++i) sums.Add(confidence[order[i]], correct[order[i]]);
    bins.push_back(sums.Means());
    begin = end;
  }
  return bins;
}

}  // namespace

std::vector<ReliabilityBin> ReliabilityBins(std::span<const double> confidence, const std::vector<bool>& correct,
                                            int num_bins, Binning binning) {
  return binning == Binning::kEqualWidth ? EqualWidth(confidence, correct, num_bins)
                                         : EqualMass(confidence, correct, num_bins);
}

double ExpectedCalibrationError(const std::vector<ReliabilityBin>& bins) {
  double total = 0, sum = 0;
  for (const ReliabilityBin& bin : bins) {
    total += static_cast<double>(bin.count);
    sum += static_cast<double>(bin.count) * std::abs(bin.accuracy - bin.mean_confidence);
  }
  return total > 0 ? sum / total : 0;
}

}  // namespace chainfleet
