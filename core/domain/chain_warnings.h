// Warnings about a job's settings, derived from the numbers of its chains.
#pragma once

#include <string>
#include <vector>

#include "core/domain/job_spec.h"
#include "core/domain/progress_record.h"

namespace chainfleet {

// Below this many float32 ulp of theta, the noise of a step heats the chain.
inline constexpr double kLeastNoiseUlps = 4;
// Above this share of steps whose noise could not be corrected, a Metropolis chain samples a biased law.
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
