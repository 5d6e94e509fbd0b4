// One step of microcanonical Langevin dynamics (Robnik, De Luca, Silverstein & Seljak, "Microcanonical Hamiltonian
// Monte Carlo", JMLR 2023; Robnik & Seljak, "Fluctuation without dissipation: microcanonical Langevin Monte Carlo",
// 2024) on all data. A velocity u of length 1 in D coordinates; f = -grad U / T:
//
//   turn by s     e = f / |f|, c = u . e, d = s |f| / (D - 1), r = exp(-d):
//                 u <- ((1 - r) (1 + r + c (1 - r)) e + 2 r u) / (1 + c + (1 - c) r^2)
//                 the kinetic energy grows by (D - 1) (d - log 2 + log(1 + c + (1 - c) r^2))
//   step by eps   turn by b eps; theta <- theta + eps u / 2; turn by (1 - 2 b) eps; theta <- theta + eps u / 2; turn by
//                 b eps; u <- (u + nu z) / |u + nu z|,  nu = sqrt((exp(2 eps / L) - 1) / D)
//
// with McLachlan's b = 0.1931833275037836. For eps -> 0 theta has the density exp(-U / T) for every L; the error of the
// energy in a step, kinetic + U / T, falls as eps^3 and says how large eps may be.
#pragma once

#include <vector>

#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The state that moves. The velocity is not of length 1 but of `length`; the gradient includes the prior.
struct Microcanonical {
  ThetaArena *theta, *velocity, *gradient;
};

// A row's numbers before a step.
struct MicrocanonicalRow {
  double energy = 0;  // U
  double length = 1;  // the velocity's
  double square = 0;  // |grad U|^2
  double step = 0;    // eps
  double decoherence_length = 0;
};

// A row's numbers after a step.
struct MicrocanonicalMove {
  double energy = 0, length = 1, square = 0;
  double energy_error = 0;
  bool finite = true;  // all of the new state
};

// A turn's new velocity is keep u + force grad U, of length 1.
struct TurnScalars {
  double keep = 1, force = 0, kinetic = 0;
};

// A turn by `way`, where u has `length`, `square` is |grad U|^2 and `product` that of u and grad U.
TurnScalars TurnBy(double way, double length, double product, double square, double dimension, double temperature);

// nu of a step.
float RefreshNoise(double step, double decoherence_length, double dimension);

// Draws a velocity for each active row; its length.
std::vector<double> DrawVelocity(const StepInputs& inputs, ThetaArena* velocity);

// U, and the square of the length of its whole gradient.
struct EnergyAndSquare {
  Late<double> energy;
  Late<PassOutcome> gradient;  // sum: |grad U|^2
};

// Computes them and the gradient at theta, over all data.
EnergyAndSquare WholeGradient(const StepInputs& inputs, ThetaArena* theta, ThetaArena* gradient);

// Moves the active rows, [C] in `rows`, from one state to another, whose arenas are not those of the first. Two
// gradients a step.
std::vector<MicrocanonicalMove> MoveMicrocanonically(const StepInputs& inputs,
                                                     const std::vector<MicrocanonicalRow>& rows, Microcanonical from,
                                                     Microcanonical to);

}  // namespace chainfleet
