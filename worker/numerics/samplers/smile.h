// Microcanonical Langevin dynamics on mini-batches (Sommer, Diao, Robnik, Seljak & Rügamer, "Can microcanonical
// Langevin dynamics leverage mini-batch gradient noise?", arXiv 2602.06500). The noise of the gradients turns the
// velocity u of length 1, in place of a refresh. One step of length eps, all of it on one mini-batch, with a scale s of
// the coordinates:
//
//   u turns by eps / 2;  theta <- theta + eps u / s;  u turns by eps / 2 with the gradient at the new theta
//
// A turn is that of microcanonical.h, with grad U / s in place of grad U. Both gradients are of one batch, so that the
// energy error is the integrator's alone. Noise of equal variance in all coordinates of s theta keeps the density
// exp(-U / T) for eps -> 0; otherwise coordinate i has the temperature T r_i, r_i = sigma_i^2 / s_i^2 divided by the
// mean over i. With the angle eta = eps |grad U / s| / (2 D T) of half a step, a step that is not small adds 5/6 eta^2
// to the temperature, so eta is at most kLargestTurn. Each chain goes through phases of fixed lengths:
//
//   descent   AdamW or heavy ball (sgd.h) on mini-batches
//   warm-up   the dynamics, in parts of .4, .1 and .5:
//             parts 1, 3  eps by energy_tuner.h, with a target from the start's to the end's
//             part 2      s_i^2 = mean of (g - g')^2 / 2 over pairs of gradients of two mini-batches at one theta: the
//                         last one of a step and the first one of the next. Divided by its mean over i, at least
//                         kLeastScale; then u is drawn anew. Without preconditioning: as part 1, s = 1.
//             end         eps is the mean of its logarithm over the last tenth
//   sampling  the dynamics with this eps and s
//
// A step of the warm-up that is not finite is undone, u is drawn anew, and eps is reduced. The authors' own code
// differs: its s is a running average that also holds the drift of the gradients, and neither s nor eps ever freezes,
// so that its law has no closed form; ours has.
#pragma once

#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/energy_tuner.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

struct Smile {
  static constexpr double kLargestTurn = 0.2, kLeastScale = 1e-6;
  // velocity: u / s, in the descent its first moment; gradient: the last one, with the prior; scale: 1 / s^2; noise:
  // sums of part 2, in the descent its second moment.
  static constexpr const char* kArenas[] = {"theta", "velocity", "gradient", "scale", "noise"};
  SmileSpec spec;

  void InitRow(SamplerState* state, int64_t row) const;
  std::vector<StepInfo> Step(const StepInputs& inputs, SamplerState* state) const;

 private:
  // A row's numbers during a step.
  struct Moving {
    double energy = 0, square = 0;  // at the start: U, |grad U / s|^2
    double energy_error = 0, length = 1;
    bool finite = true;
  };
  // Gives rows that begin the scale 1 and a velocity.
  void Begin(const StepInputs& inputs, SamplerState* state) const;
  // Draws u for the active rows, and sets its length.
  void DrawDirection(const StepInputs& inputs, uint64_t label, SamplerState* state) const;
  // Moves the active rows into the first arenas of the scratch, and their first gradients into its fourth.
  std::vector<Moving> Propose(const StepInputs& inputs, SamplerState* state) const;
  void Move(const StepInputs& inputs, SamplerState* state, std::vector<StepInfo>* infos) const;
  void Tune(const Moving& move, int64_t step, double dimension, double temperature, std::vector<double>* numbers) const;
  // Adds the pairs of part 2; the mean of the sums over the coordinates.
  std::vector<double> GatherNoise(const StepInputs& inputs, SamplerState* state) const;
  // Sets the scale at the end of part 2.
  void Rescale(const StepInputs& inputs, const std::vector<double>& means, SamplerState* state) const;
  bool InPart2(int64_t t) const;
};

}  // namespace chainfleet
