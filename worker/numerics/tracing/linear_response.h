// The response of a kernel to a force and to curvature. It gives the effect of measured gradient noise and curvature.
#pragma once

#include <optional>

#include "core/domain/sampler_spec.h"

namespace chainfleet {

// Displacement of theta per step and unit of constant force: alpha for SGLD and EMCMC (before theta_a pulls theta
// back), and with all later effects alpha / a for the friction scheme of SGHMC, alpha (2 - a) / (2 a) for BAOA. The
// injected noise matches mobility and T (variance 2 mobility T a step). nullopt for samplers whose stationary
// distribution under gradient noise is unknown.
std::optional<double> Mobility(const SamplerSpec& sampler, double step_size);

// The heat of gradient noise: noise of variance V raises the effective temperature of theta from T to
//
//   T + HeatOfNoise V         (for alpha k -> 0)
//
// mobility / 2 for SGLD and SGHMC. Under EMCMC theta and theta_a share the heat: for curvatures k far below g = 1 / eta
// it is alpha / 4, half the displacement of both by a force on theta. For emcmc_gibbs with L inner steps it is there
// (alpha / 2) (1 + r^L) / (1 + r), r = 1 - alpha g. In stiffer directions both approach alpha / 2: under EMCMC the heat
// is (alpha / 2) (k + g) / (k + 2 g), from A S + S A = 2 diag(T + alpha V / 2, T) with A = [[k + g, -g], [-g, g]].
// nullopt as for Mobility, and where emcmc_gibbs diverges for every k.
std::optional<double> HeatOfNoise(const SamplerSpec& sampler, double step_size);

// The step size below which a chain on U = k x^2 / 2 is stable, where k = `curvature` (negative counts as 0): the
// recursion's spectral radius reaches 1 there. `prior_precision` acts on theta_a under anchor_decay. For mc_dropout:
// the bound of the network without dropout. For sam: the bound of its descent; within it, sam circles a minimum at a
// distance of the order of rho. nullopt if every step size is stable, for bsam, whose steps are scaled for each
// parameter, and for samplers that cannot diverge (Metropolis; hmc has the bound of leapfrog, beyond which nothing is
// accepted).
std::optional<double> StableBelow(const SamplerSpec& sampler, double curvature, double prior_precision);

// True if StableBelow supports the sampler.
bool HasStabilityBound(const SamplerSpec& sampler);

}  // namespace chainfleet
