// Runs a pass of kernels/pass.h over arenas of a sampler, on their device.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// `arenas` are in the order of the pass, rows as in `chains`; `scalars(row, s)` sets the scalars of an active row. The
// normals are those of (chain key, folded with `label` unless it is 0; stream; t). One outcome per row, zeros for
// inactive rows; the first read waits for it.
Late<PassOutcome> RunPass(Pass pass, std::initializer_list<ThetaArena*> arenas, const std::vector<ChainStep>& chains,
                          const std::function<void(int64_t row, float* s)>& scalars,
                          RngStream stream = RngStream::kThetaNoise, uint64_t label = 0);

}  // namespace chainfleet
