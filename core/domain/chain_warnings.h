// What a chain's numbers say is wrong with the settings of its job.
#pragma once

#include <string>
#include <vector>

#include "core/domain/job_spec.h"
#include "core/domain/progress_record.h"

namespace chainfleet {

// Noise of a step below so many float32 ulp of theta heats the chain.
inline constexpr double kLeastNoiseUlps = 4;
// A larger share of steps whose noise was beyond correction bends the law of a Metropolis chain.
inline constexpr double kMostGuarded = 0.01;

// A sentence each, empty if nothing is wrong: a step size above the bound of linear stability, noise that rounding
// drowns, energy differences too noisy for the penalty. Warnings, never a refusal: cyclical restarts cross the first on
// purpose. `num_examples` N turns alpha into h.
std::vector<std::string> WarningsOf(const ChainStats& stats, const JobSpec& spec, int64_t num_examples);

// The stationary variance over T / k that float32 makes of noise of `noise_ulps`: between the measured 1.69 at a
// quarter of an ulp, 1.10 at one and 1.004 at four on straight lines of log(ratio - 1) against log(noise), the ends
// prolonged.
double RoundingHeat(double noise_ulps);

}  // namespace chainfleet
