// Scalar quantities of a chain at some of its steps, from which R-hat and effective sample sizes are computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chainfleet {

inline constexpr int64_t kTraceWindow = 1000;       // newest values of each quantity and chain that diagnostics read
inline constexpr int64_t kMostTracedChains = 128;   // traced chains of a sweep point: the first to commit
inline constexpr int64_t kMostRankedChains = 1024;  // the same for jobs of kind sbc
inline constexpr size_t kMostTraceQuantities = 144, kMostTraceName = 512;  // bytes of a name, which is a key in stores
inline constexpr int64_t kMostTracedParameters = 64;  // a potential with more traces none of its parameters

// Names of the quantities that are a network's predictions at a row of the data set: "theta.probability[7]" for labels,
// "theta.log_density[7]" for numbers. The weights of a network are not identified, so only its predictions decide
// whether its chains agree. If a job has predictions, its other quantities only describe the job.
inline constexpr char kProbabilityTrace[] = ".probability[", kLogDensityTrace[] = ".log_density[";
inline bool IsOfPredictions(std::string_view quantity) {
  return quantity.find(kProbabilityTrace) != quantity.npos || quantity.find(kLogDensityTrace) != quantity.npos;
}

// The traced values of the steps that one commit adds. A trace names its quantities, so a server needs only traces to
// diagnose.
struct ChainTrace {
  int32_t point = 0;                    // sweep point; chains of different points sample different laws
  std::vector<std::string> quantities;  // Q names, the same for all chains of a job
  std::vector<int64_t> steps;           // [n], rising
  std::vector<double> values;           // [n, Q], row-major

  bool any() const { return !steps.empty(); }
  bool well_formed() const {
    return quantities.size() <= kMostTraceQuantities && values.size() == steps.size() * quantities.size() &&
           std::ranges::all_of(quantities, [](const std::string& name) { return name.size() <= kMostTraceName; });
  }
  static void Fields(auto& self, auto&& visit) {
    visit("point", self.point);
    visit("quantities", self.quantities);
    visit("steps", self.steps);
    visit("values", self.values);
  }
  bool operator==(const ChainTrace&) const = default;
};

}  // namespace chainfleet
