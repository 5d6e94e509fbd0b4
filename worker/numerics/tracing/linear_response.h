// How a kernel answers to a force and to curvature: what a measured gradient noise and a measured Hessian mean for it.
#pragma once

#include <optional>

#include "core/domain/sampler_spec.h"

namespace chainfleet {

// Displacement of theta per step and unit of constant force, all its consequences counted: alpha for SGLD and EMCMC,
// alpha / a for the friction scheme of SGHMC, alpha (2 - a) / (2 a) for BAOA. Injected noise is made for mobility and T
// (2 mobility T of variance a step); gradient noise of variance V adds mobility^2 V, hence the effective temperature
//
//   T + mobility V / 2        (for alpha k -> 0)
//
// Nothing for samplers whose law under gradient noise is not known.
std::optional<double> Mobility(const SamplerSpec& sampler, double step_size);

// The step size that a chain on U = k x^2 / 2 must stay below, k = `curvature` (below 0 counts as 0): where the
// recursion's spectral radius reaches 1. `prior_precision` is felt by theta_a under anchor_decay. Of mc_dropout that of
// the network with all units in use; of sam that of its descent, within which it circles a minimum at a distance of the
// order of rho. Nothing if no step is too large, for bsam, whose steps are scaled parameter by parameter, and for
// samplers that cannot diverge (Metropolis; hmc has the bound of leapfrog, beyond which nothing is accepted).
std::optional<double> StableBelow(const SamplerSpec& sampler, double curvature, double prior_precision);

// Whether StableBelow knows the sampler at all.
bool HasStabilityBound(const SamplerSpec& sampler);

}  // namespace chainfleet
