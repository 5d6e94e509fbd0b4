// Scalar quantities of a chain at a few of its steps: what R-hat and effective sample sizes are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chainfleet {

inline constexpr int64_t kTraceWindow = 1000;      // values of a quantity that are looked at, of each chain: the newest
inline constexpr int64_t kMostTracedChains = 128;  // of a point: the first that come
inline constexpr size_t kMostTraceQuantities = 32;

// Names of the quantities that are a network's predictions at a row of the data set: "theta.probability[7]" of labels,
// "theta.log_density[7]" of numbers. The weights of a network are not identified, so its predictions alone decide
// whether its chains agree; the other quantities of a job that has such ones describe it.
inline constexpr char kProbabilityTrace[] = ".probability[", kLogDensityTrace[] = ".log_density[";
inline bool IsOfPredictions(std::string_view quantity) {
  return quantity.find(kProbabilityTrace) != quantity.npos || quantity.find(kLogDensityTrace) != quantity.npos;
}

// Of the steps that one commit adds. Names what it holds, so that a server needs no more than a trace to diagnose.
struct ChainTrace {
  int32_t point = 0;                    // of the job's sweep: chains of different points sample different laws
  std::vector<std::string> quantities;  // Q names, the same of all chains of a job
  std::vector<int64_t> steps;           // [n], rising
  std::vector<double> values;           // [n, Q], row-major

  bool well_formed() const {
    return quantities.size() <= kMostTraceQuantities && values.size() == steps.size() * quantities.size();
  }
  bool operator==(const ChainTrace&) const = default;
};

}  // namespace chainfleet
