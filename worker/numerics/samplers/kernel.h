// The closed set of sampling kernels. A kernel is a value: immutable settings with
//
//   kArenas                       names of the arenas of its state, theta first
//   InitRow(state, row)           the rest of a row whose theta is set
//   Step(inputs, state) -> infos  one step of every active row
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/emcmc.h"
#include "worker/numerics/samplers/sgld.h"

namespace chainfleet {

using Kernel = std::variant<Sgld, Emcmc>;

Kernel MakeKernel(const SamplerSpec& spec);

// Names of the arenas of the kernel's state, in order: "theta", "theta_a".
std::vector<std::string> ArenaNames(const Kernel& kernel);

}  // namespace chainfleet
