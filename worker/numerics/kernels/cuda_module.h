// libchainfleet_cuda.so at run time. It contains LibTorch's CUDA back end and our kernels, and is loaded only for
// --device cuda:N.
#pragma once

#include <string>

#include "core/base/status.h"
#include "worker/numerics/kernels/minibatch_ids.h"
#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/kernels/update.h"
#include "worker/numerics/tensors/late.h"

namespace chainfleet {

// Loads the module from the executable's folder or from ../lib of it. Called once, before the first torch call of the
// process (LibTorch looks up its CUDA hooks only once). FAILED_PRECONDITION / NO_DEVICE says what is missing.
absl::Status LoadCudaModule();

// Runs the fused update of kernels/update.h on GPU `device`, without a wait. REQUIRES: the module is loaded.
Late<RowOutcome> LangevinUpdateCuda(const UpdateBuffers& buffers, const RowStep* steps, int device);

// Runs a pass of kernels/pass.h; otherwise as LangevinUpdateCuda.
Late<PassOutcome> RunPassCuda(Pass pass, const PassBuffers& buffers, const PassRow* rows, int device);

// Writes the ids [rows, n] of the minibatches of the steps `keys`; both are GPU memory. Otherwise as
// LangevinUpdateCuda.
void FillIdsCuda(const BatchDraw& draw, const StepKey* keys, int64_t rows, int64_t* ids, int device);

}  // namespace chainfleet
