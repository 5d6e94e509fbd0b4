// The shared parts of the Metropolis kernels: the decision, the choice by row, the counts behind the acceptance rate.
//
// Decisions are in units of energy, so that temperature 0 needs no case of its own: with the cost B = -T log(acceptance
// ratio), a proposal is accepted iff B <= T e, e = -log u standard exponential, u uniform.
#pragma once

#include <initializer_list>
#include <vector>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The numbers every Metropolis kernel keeps of a row; a kernel's own follow.
enum MetropolisNumber : int { kStepCount, kAcceptCount, kFirstOwnNumber };

// min(1, exp(-cost / T)) against the uniform of (chain, t) in kAccept. A cost that is not finite is refused.
bool Accepts(const ChainStep& chain, double cost);

// How a row's proposal fared.
struct Verdict {
  double energy = 0;   // where the row is
  bool finite = true;  // the row's state, apart from its energy, is finite
  bool accept = false;
};

// An accepted row of `to` becomes that of `from`.
struct Move {
  ThetaArena* to;
  const ThetaArena* from;
};

// Moves the rows that accept, counts, and tells. A row that is not finite where it is stays and is reported.
std::vector<StepInfo> Settle(const StepInputs& inputs, const std::vector<Verdict>& verdicts,
                             std::initializer_list<Move> moves, SamplerState* state);

}  // namespace chainfleet
