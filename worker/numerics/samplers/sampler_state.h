// Inputs and outputs of a kernel's step.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/rng_key.h"
#include "core/domain/progress_record.h"
#include "worker/numerics/arena/theta_arena.h"
#include "worker/numerics/kernels/update.h"
#include "worker/numerics/potentials/minibatch.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

// The whole state of the chains between steps, except step and key: C rows of theta, of the kernel's other arenas
// (kernel.h names them), and of its numbers. Arenas share layout, device and row order.
struct SamplerState {
  std::vector<ThetaArena> arenas;
  std::vector<std::vector<double>> numbers;  // [C], the kernel defines their meaning
  // [C]: values that a kernel computed from the rest, and computes again if null; not part of a resume point.
  std::vector<std::shared_ptr<void>> derived;
  void AddRow();
  // Removes row `row`; the last row takes its place.
  void RemoveRow(int64_t row);
  // Keeps the first `rows` rows, also after an AddRow that threw.
  void Truncate(int64_t rows);
  ThetaArena& theta() { return arenas[0]; }
  const ThetaArena& theta() const { return arenas[0]; }
};

// Numbers in which a row of a sweep differs; if one is not set, that of the kernel or the potential applies.
struct RowSettings {
  std::optional<double> prior_precision, eta, friction, rho;
};

// One row's part in a step.
struct ChainStep {
  RngKey key;     // Fold(job seed, chain index)
  int64_t t = 0;  // steps done before this one
  double step_size = 0;
  double temperature = 0;
  bool active = true;  // false: the step leaves the row unchanged
  RowSettings own = {};
};

struct StepInfo {
  double energy = 0;                   // U at the old theta, on the step's batch
  bool finite = true;                  // energy and the whole new state
  double anchor_distance = 0;          // |theta - theta_a| before the step; 0 without an anchor
  double gradient_uncertainty = 0;     // the statistic that GradientUncertainty compares with its threshold
  bool moved = true;                   // false: a Metropolis kernel rejected its proposal
  bool kept = true;                    // false: the kernel keeps no draw of this step, whatever the job collects
  MetropolisStats metropolis;          // set by a Metropolis kernel
  std::optional<double> log_evidence;  // set by a Laplace approximation, once it exists
  std::optional<double> step_size;     // set by a kernel that tunes its own
};

// Buffers that outlive a step only to save allocations; no part of the state.
struct StepScratch {
  explicit StepScratch(ThetaArena gradient) : gradient(std::move(gradient)) {}
  // The `i`-th arena besides the gradient, with the rows of `like`. It holds the values of its last use.
  ThetaArena& Arena(size_t i, const ThetaArena& like);

  ThetaArena gradient;
  std::vector<ThetaArena> arenas;
  std::vector<int64_t> ids;        // [C, n]
  std::vector<StepKey> keys;       // [C]
  std::vector<double> precisions;  // [C]
  Late<double> energy;             // [C]
  std::vector<RowStep> steps;      // [C]
  int64_t gradients = 0;           // minibatches whose gradient was computed, per row
};

// The inputs of a step: `chains` is [C], in row order.
struct StepInputs {
  Potential* potential;
  const MinibatchPlan* batches;
  const StepPlan* plan;
  const std::vector<ChainStep>& chains;
  StepScratch* scratch;
};

// Potential::EvaluateLate, counted in the scratch.
Late<double> Evaluate(const StepInputs& inputs, const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient);

// The precision of each row's Gaussian prior, for Potential; null if no row has its own. Stored in the scratch until
// the next call.
const double* PriorPrecisions(const StepInputs& inputs);

// The prior precision of a row: the update adds precision times theta to its gradient.
inline double PriorPrecision(const StepInputs& inputs, int64_t row) {
  return inputs.chains[row].own.prior_precision.value_or(inputs.potential->prior_precision());
}

// Takes the values of `second` in the active rows of `first`. Leaves anything in `second`.
void TakeRows(const std::vector<ChainStep>& chains, std::initializer_list<std::pair<ThetaArena*, ThetaArena*>> arenas);

// Adds or removes rows at the end until `arena` has those of `like`.
void MatchRows(const ThetaArena& like, ThetaArena* arena);

}  // namespace chainfleet
