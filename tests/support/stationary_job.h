// Jobs on a quadratic, run through the public job interface, and the second moments of their chains' draws.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/domain/job_spec.h"
#include "tests/support/langevin_law.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet::testing {

// U = k |x|^2 / 2 with independent coordinates, started at 0. Every step after burn-in is kept.
struct StationaryJob {
  SamplerSpec sampler;
  double k = 2, step_size = 0.2, temperature = 0.7;
  SweepSpec sweep = {};
  int64_t dimension = 4000, burn_in = 60, draws = 400;
  int32_t chains = 4;  // chains of a point

  JobSpec Spec() const;
};

// Calls `take` with every kept draw: all chains of a step, then the next step.
void RunJob(const StationaryJob& job, const std::function<void(int32_t chain, const Draw&)>& take);

// Returns the moments by point of the sweep.
std::vector<MomentTraces> RunForMoments(const StationaryJob& job);

}  // namespace chainfleet::testing
