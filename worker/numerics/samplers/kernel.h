// The closed set of sampling kernels. A kernel is a value: immutable settings with
//
//   kArenas or Arenas()           names of the arenas of its state, theta first
//   InitRow(state, row)           sets the rest of a row that has theta, and other arenas and numbers that are empty
//   Step(inputs, state) -> infos  one step of every active row; [C], in row order. Late<StepInfo> if the step itself
//                                 needs none of its numbers
//   draw_arena()                  optional: the arena from which a draw of theta is taken, if it is not theta
//
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/domain/sampler_spec.h"
#include "worker/numerics/samplers/bsam.h"
#include "worker/numerics/samplers/emcmc.h"
#include "worker/numerics/samplers/emcmc_gibbs.h"
#include "worker/numerics/samplers/entropy_sgd.h"
#include "worker/numerics/samplers/gradient_uncertainty.h"
#include "worker/numerics/samplers/hmc.h"
#include "worker/numerics/samplers/laplace.h"
#include "worker/numerics/samplers/mala.h"
#include "worker/numerics/samplers/mc_dropout.h"
#include "worker/numerics/samplers/mile.h"
#include "worker/numerics/samplers/minibatch_mh.h"
#include "worker/numerics/samplers/random_walk.h"
#include "worker/numerics/samplers/sam.h"
#include "worker/numerics/samplers/sgd.h"
#include "worker/numerics/samplers/sghmc.h"
#include "worker/numerics/samplers/sgld.h"
#include "worker/numerics/samplers/smile.h"
#include "worker/numerics/samplers/swag.h"

namespace chainfleet {

using Kernel = std::variant<Sgld, Emcmc, EmcmcGibbs, EntropySgd, Sgd, Sghmc, Sam, Bsam, Swag, GradientUncertainty,
                            RandomWalk, Mala, Hmc, MinibatchMh, McDropout, Laplace, Mile, Smile>;

// UNIMPLEMENTED, naming the sampler: this build has no kernel for it.
absl::StatusOr<Kernel> MakeKernel(const SamplerSpec& spec);

// Names of the arenas of the kernel's state, in order: "theta", "theta_a".
std::vector<std::string> ArenaNames(const Kernel& kernel);

// The name of the arena from which a draw of `kind` is taken.
std::string DrawArena(const Kernel& kernel, DrawKind kind);

}  // namespace chainfleet
