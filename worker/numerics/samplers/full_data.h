// The potential over all data, or over the examples that a Metropolis kernel names, in chunks of bounded memory.
//
//   U(theta) = -log prior + w sum_i loss_i(theta)        w: weight of the likelihood, 1 unless a kernel changes it
//
// Differences are summed over examples in double, because the totals are large and the difference is small. An analytic
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

// U over all data, at theta and at a proposal `to`; meaningless for inactive rows. Keeps the losses of all examples in
// state->derived, so that a step computes only those of its proposal. Call KeepLosses after the rows have moved.
std::vector<EnergyChange> ChangeOverAllData(const StepInputs& inputs, const ThetaArena& to, double likelihood_weight,
                                            SamplerState* state);

// The losses of the proposal become those of theta in the rows that have moved to it. `info` is that of the step.
void KeepLosses(const StepInputs& inputs, const std::vector<StepInfo>& info, SamplerState* state);

// `see(row, first, count, at_from, at_to)` gets the losses of examples ids[row][first, first + count), in order for a
// row.
using SeeLosses =
    std::function<void(int64_t row, int64_t first, int64_t count, const double* at_from, const double* at_to)>;

// Computes the losses at `from` and `to` of `count` examples per row. `ids` is [C, count].
void CompareLosses(const StepInputs& inputs, const ThetaArena& from, const ThetaArena& to, const int64_t* ids,
                   int64_t count, const SeeLosses& see);

// Examples of each row: `count` ids from each of the C pointers, or 0 .. count-1 for every row if there are none.
struct ChosenRows {
  std::vector<const int64_t*> ids = {};
  int64_t count = 0;
};

// sum_i loss_i(theta) of each row, over all data or the chosen examples.
std::vector<double> LossOverAllData(const StepInputs& inputs, const ThetaArena& theta);
std::vector<double> LossOver(const StepInputs& inputs, const ThetaArena& theta, const ChosenRows& chosen);

// U of each row, and grad U minus prior precision * theta, over all data or with the chosen examples as a minibatch: as
// Potential::Evaluate gives them, the mean over chunks weighted by their sizes, so that the prior counts once.
// `gradient` must not be the scratch's own.
Late<double> GradientOverAllData(const StepInputs& inputs, const ThetaArena& theta, ThetaArena* gradient);
Late<double> GradientOver(const StepInputs& inputs, const ThetaArena& theta, const ChosenRows& chosen,
                          ThetaArena* gradient);

}  // namespace chainfleet
