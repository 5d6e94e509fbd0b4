// The shared parts of the Metropolis kernels: the decision, the moves of rows, and the counts for the acceptance rate.
//
// Decisions are in units of energy, so that temperature 0 needs no special case. With the cost B = -T log(acceptance
// ratio), a proposal is accepted iff B <= T e, where e = -log u is standard exponential and u uniform.
#pragma once

#include <initializer_list>
#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The numbers that every Metropolis kernel keeps for a row, followed by the kernel's own.
enum : int { kStepCount, kAcceptCount, kFirstOwnNumber };

// Accepts with min(1, exp(-cost / T)), using the uniform of (chain, t) in kAccept. Rejects a cost that is not finite.
bool Accepts(const ChainStep& chain, double cost);

// The outcome of a row's proposal.
struct Verdict {
  double energy = 0;   // at the row's state
  bool finite = true;  // the row's state, apart from its energy, is finite
  bool accept = false;
};

// Copies an accepted row of `from` to `to`.
struct Move {
  ThetaArena* to;
  const ThetaArena* from;
};

// Moves the rows that accept, counts, and reports. A row whose state is not finite is not moved, and is reported.
std::vector<StepInfo> Settle(const StepInputs& inputs, const std::vector<Verdict>& verdicts,
                             std::initializer_list<Move> moves, SamplerState* state);

}  // namespace chainfleet
