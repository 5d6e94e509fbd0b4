// What the stochastic-gradient kernels share: the values a step takes and gives, the mini-batch gradient, and the fused
// update on whichever device the rows are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/rng_key.h"
#include "worker/numerics/kernels/update.h"
#include "worker/numerics/minibatch.h"
#include "worker/numerics/potential.h"
#include "worker/numerics/theta_arena.h"

namespace chainfleet {

// All that a chain is at a step but for its step and key: C rows of theta, and of whatever the kernel keeps beside it
// (kernel.h names them). Arenas share layout, device and row order.
struct SamplerState {
  std::vector<ThetaArena> arenas;
  ThetaArena& theta() { return arenas[0]; }
  const ThetaArena& theta() const { return arenas[0]; }
};

// One row's part in a step.
struct ChainStep {
  RngKey key;     // Fold(job seed, chain index)
  int64_t t = 0;  // steps done before this one
  double step_size = 0;
  double temperature = 0;
  bool active = true;  // false: the row rests
};

struct StepInfo {
  double energy = 0;           // U at the old theta, on the step's batch
  bool finite = true;          // energy and all of the new state
  double anchor_distance = 0;  // |theta - theta_a| before the step; 0 without an anchor
};

// Buffers that outlive a step only to save allocations; no part of the state.
struct StepScratch {
  explicit StepScratch(ThetaArena gradient) : gradient(std::move(gradient)) {}
  ThetaArena gradient;
  std::vector<int64_t> ids;      // [C, n]
  std::vector<double> energy;    // [C]
  std::vector<RowStep> steps;    // [C]
  std::vector<RowOutcome> seen;  // [C]
};

// What a step runs on: `chains` is [C], in row order.
struct StepInputs {
  Potential* potential;
  const MinibatchPlan* batches;
  const std::vector<ChainStep>& chains;
  StepScratch* scratch;
};

// Gradient and energy at `theta`, each row on its own batch, into the scratch.
void EvaluateBatches(const StepInputs& inputs, const ThetaArena& theta);

// The update of kernels/update.h with the scratch's gradient; `theta_a` may be null. One StepInfo per row.
std::vector<StepInfo> UpdateLangevin(const StepInputs& inputs, double coupling, ThetaArena* theta, ThetaArena* theta_a);

}  // namespace chainfleet
