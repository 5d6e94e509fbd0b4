// Microcanonical Langevin dynamics on mini-batches (Sommer, Diao, Robnik, Seljak & Rügamer, "Can microcanonical
// Langevin dynamics leverage mini-batch gradient noise?", arXiv 2602.06500), with a velocity u of length 1 and a scale
// s of the coordinates. One step of length eps, all of it on one mini-batch:
//
//   u turns by eps / 2;  theta <- theta + eps u / s;  u turns by eps / 2 with the gradient at the new theta;
//   u <- (u + nu z) / |u + nu z|
//
// Turn and nu are those of microcanonical.h, with grad U / s in place of grad U. Both gradients are of one batch, so
// that the energy error is the integrator's alone. The noise of gradients turns u, too: with r_i = sigma_i^2 / s_i^2
// divided by its mean over i, and w the noise's share, coordinate i has the temperature T (1 + w r_i) / (1 + w) for
// eps -> 0, w = eps L |sigma / s|^2 / (2 D^2 T^2). The scale brings r_i near 1, L keeps w small. With the angle eta =
// eps |grad U / s| / (2 D T) of half a step, a step that is not small multiplies the temperature by 1 + 5/6 eta^2 at
// most, so eta is at most kLargestTurn. Each chain goes through phases of fixed lengths:
//
//   descent   AdamW or heavy ball (sgd.h) on mini-batches
//   warm-up   the dynamics, in parts of .4, .1 and .5:
//             parts 1, 3  eps by energy_tuner.h, with a target from the start's to the end's; L from w, with
//                         |grad U / s|^2 for the noise, which is at most that
//             part 2      s_i^2 = mean of (g - g')^2 / 2 over pairs of gradients of two mini-batches at one theta: the
//                         last one of a step and the first one of the next. Divided by its mean over i, at least
//                         kLeastScale: coordinates with little noise have only the prior's curvature, and would take
//                         steps too long for that. Then u is drawn anew. Without preconditioning, or with noise
//                         below kLeastNoise of |grad U|^2: as part 1, s = 1.
//             end         eps is the mean of its logarithm over the last tenth
//   sampling  the dynamics with this eps, s and L
//
// A step of the warm-up that is not finite is undone, u is drawn anew, and eps is reduced. The authors' own code
// (github.com/EmanuelSommer/SMILE) differs: it has no refresh, its s is a running average that also holds the drift of
// the gradients, and neither s nor eps ever freezes, so that its law has no closed form; ours has.
#pragma once

#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/energy_tuner.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

struct Smile {
  static constexpr double kLargestTurn = 0.2, kLeastScale = 0.01;
  static constexpr double kLeastNoise = 1e-4;  // share of |grad U|^2 that makes a scale
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
  // Adds the pairs of part 2.
  void GatherNoise(const StepInputs& inputs, SamplerState* state) const;
  bool HasNoise(const std::vector<double>& numbers, double dimension, double temperature) const;
  // Sets the scale at the end of part 2.
  void Rescale(const StepInputs& inputs, SamplerState* state) const;
  bool InPart2(int64_t t) const;
};

}  // namespace chainfleet
