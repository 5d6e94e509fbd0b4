// Warnings about a job's settings, derived from the numbers of its chains.
#pragma once

#include <string>
#include <vector>

#include "core/domain/job_spec.h"
#include "core/domain/progress_record.h"

namespace chainfleet {

// Below this noise, in float32 ulp of theta, rounding heats the chain.
inline constexpr double kLeastNoiseUlps = 4;
// Above this share of steps with uncorrected noise, a Metropolis chain samples a biased law.
inline constexpr double kMostGuarded = 0.01;

// Returns one sentence for each problem: a step size above the bound of linear stability, noise below the rounding
// error, or energy differences too noisy for the penalty. Warnings never reject a job: cyclical restarts exceed the
// first bound on purpose. `num_examples` N converts alpha to h.
std::vector<std::string> WarningsOf(const ChainStats& stats, const JobSpec& spec, int64_t num_examples);

// Returns the ratio of the stationary variance to T / k when the noise of a step is `noise_ulps`. Interpolates the
// measured 1.69 at a quarter of an ulp, 1.10 at one and 1.004 at four, linear in log(ratio - 1) against log(noise), and
// extrapolates both ends.
double RoundingHeat(double noise_ulps);

}  // namespace chainfleet
