// Runs a pass of kernels/pass.h over arenas of a sampler, on whichever device they are.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// `arenas` in the order of the pass, rows as in `chains`; `scalars(row, s)` fills the scalars of an active row. Normals
// are those of (chain key folded with `label` unless that is 0, stream, t). One outcome per row, zeros for rows at
// rest; it is waited for when it is first read.
Late<PassOutcome> RunPass(Pass pass, std::initializer_list<ThetaArena*> arenas, const std::vector<ChainStep>& chains,
                          const std::function<void(int64_t row, float* s)>& scalars,
                          RngStream stream = RngStream::kThetaNoise, uint64_t label = 0);

}  // namespace chainfleet
