// The potential over all data, or over examples that a Metropolis kernel names, in chunks of bounded memory.
//
//   U(theta) = -log prior + w sum_i loss_i(theta)        w: the weight of the likelihood, 1 unless a kernel says
//   otherwise
//
// Differences are summed example by example in double: the totals are large where the difference is small. An analytic
// potential counts as one example.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// Energies of one row: U at its state, and the change of U to its proposal.
struct EnergyChange {
  double energy = 0, change = 0;
};

// -log prior.
std::vector<EnergyChange> PriorChange(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to);

// U over all data.
std::vector<EnergyChange> ChangeOverAllData(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to,
                                            double likelihood_weight);

// `see(row, first, count, at_from, at_to)`: losses of examples ids[row][first, first + count), each row's in order.
using SeeLosses =
    std::function<void(int64_t row, int64_t first, int64_t count, const double* at_from, const double* at_to)>;

// Losses at both of `count` examples a row, `ids` [C, count]; null: of examples 0 .. count-1 for every row.
void CompareLosses(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to, const int64_t* ids,
                   int64_t count, const SeeLosses& see);

// sum_i loss_i(theta) of each row.
std::vector<double> LossOverAllData(const StepInputs& inputs, const ThetaArena& theta);

// grad U over all data less the prior's precision * theta, as Potential::Evaluate gives it of a batch: the mean over
// chunks weighted by their sizes, so that the prior counts once. `gradient` is not the scratch's own.
void GradientOverAllData(const StepInputs& inputs, const ThetaArena& theta, ThetaArena* gradient);

}  // namespace chainfleet
