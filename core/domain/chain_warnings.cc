#include "core/domain/chain_warnings.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace chainfleet {
namespace {

std::string OfStepSize(const RunReport& report, double n) {
  const double tested = report.tested_step_size.value_or(0);
  if (!report.curvature || !report.stable_below || tested <= *report.stable_below) return "";
  return absl::StrFormat(
      "step size %.3g (h = %.3g) is above the stability bound %.3g (h = %.3g) of the curvature %.3g measured", tested,
      tested * n, *report.stable_below, *report.stable_below * n, *report.curvature);
}

std::string OfRounding(const RunReport& report, double n) {
  if (!report.noise_ulps || *report.noise_ulps >= kLeastNoiseUlps) return "";
  return absl::StrFormat(
      "the noise of a step is %.2g ulp of the parameters (T = %.3g, h = %.3g): rounding to float32 makes the variance "
      "about %.3g times too large; take a larger step size or temperature",
      *report.noise_ulps, report.temperature, report.step_size * n, RoundingHeat(*report.noise_ulps));
}

std::string OfPenalty(const MetropolisStats& seen, int64_t num_batches) {
  if (!(seen.guarded > kMostGuarded)) return "";
  return absl::StrFormat(
      "biased: %.1f %% of the steps saw noisier energy differences than %d batches can correct; take a larger "
      "num_batches, a larger batch or a shorter proposal",
      100 * seen.guarded, num_batches);
}

}  // namespace

double RoundingHeat(double noise_ulps) {
  // log(ratio - 1) at noise of 1/4, 1 and 4 ulp.
  const double low = std::log(0.69), middle = std::log(0.10), high = std::log(0.004);
  const double place = std::log(noise_ulps) / std::log(4);
  return 1 + std::exp(middle + place * (place < 0 ? middle - low : high - middle));
}

std::vector<std::string> WarningsOf(const ChainStats& stats, const JobSpec& spec, int64_t num_examples) {
  std::vector<std::string> warnings;
  const auto add = [&](std::string warning) {
    if (!warning.empty()) warnings.push_back(std::move(warning));
  };
  if (stats.report) {
    add(OfStepSize(*stats.report, static_cast<double>(num_examples)));
    add(OfRounding(*stats.report, static_cast<double>(num_examples)));
  }
  if (stats.metropolis) add(OfPenalty(*stats.metropolis, spec.sampler.num_batches()));
  return warnings;
}

}  // namespace chainfleet
