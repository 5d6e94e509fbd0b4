// Microcanonical Langevin ensembles (Sommer, Robnik, Nozadze, Seljak & Rügamer, "Microcanonical Langevin ensembles:
// advancing the sampling of Bayesian neural networks", ICLR 2025). Each chain goes through phases of fixed lengths:
//
//   descent   AdamW or heavy ball (sgd.h) on all data but the chain's validation part, until `patience` steps in a row
//             have not lowered the loss of that part; then the best theta is kept. Without a validation part: all
//             steps.
//   warm-up   microcanonical Langevin dynamics (microcanonical.h) with a tuner, in parts of .8, .1 and .1:
//             parts 1, 2  L = max(sqrt D, 15); eps by energy_tuner.h, with a target v from the start's to the end's
//             part 2      moments of theta, each step weighted by eps; at the end L = sqrt(sum of the variances)
//             part 3      L = 0.4 eps tau, tau the mean autocorrelation time of the coordinates in steps: from sums S1,
//                         S2 of theta over b steps each, tau = mean of (S1 - S2)^2 / (2 b variance). Two pairs of sums
//                         fill part 3, as tau of a network is long; up to 10 do below 50 coordinates, which have fewer
//                         terms of the mean.
//   sampling  the dynamics with this eps and L
//
// The target and the parts are those of the authors' scikit-learn-contrib/bde; it takes tau from effective sample sizes
// by Fourier transforms of part 3, which need all its states in memory.
#pragma once

#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/microcanonical.h"

namespace chainfleet {

struct Mile {
  // velocity: in the descent, the best theta; first, second: the descent's moments, then mean and variance of theta,
  // then sums of part 3 and the variance.
  static constexpr const char* kArenas[] = {"theta", "velocity", "gradient", "first", "second"};
  MileSpec spec;

  void InitRow(SamplerState* state, int64_t row) const;
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;

 private:
  // The rows that still descend, with their losses on the validation part, empty without one, and energies.
  struct Descending {
    std::vector<ChainStep> training = {};
    std::vector<double> losses = {}, energies = {};
  };
  // Leaves the gradients in the scratch.
  Descending EvaluateDescent(const StepInputs& inputs, const SamplerState& state) const;
  // Moves theta by these gradients.
  Late<PassOutcome> Descend(const StepInputs& inputs, SamplerState* state) const;
  // Keeps theta where its loss is the lowest so far, before theta moves.
  void KeepBest(const Descending& at, SamplerState* state) const;
  // Notes that loss, or that another step has not reached it.
  void CountWaits(const Descending& at, SamplerState* state) const;
  void Begin(const StepInputs& inputs, SamplerState* state) const;
  void Move(const StepInputs& inputs, SamplerState* state, std::vector<StepInfo>* infos) const;
  // Tunes eps after a step of the warm-up's parts 1 and 2. False: the step must be undone.
  bool TuneStep(const MicrocanonicalMove& move, int64_t step, double dimension, std::vector<double>* numbers) const;
  // Tune L after a step of parts 2 and 3.
  void TakeMoments(const StepInputs& inputs, SamplerState* state) const;
  void TakeSums(const StepInputs& inputs, SamplerState* state) const;
};

}  // namespace chainfleet
