// libchainfleet_cuda.so at run time: it brings LibTorch's CUDA back end and our kernels, and is loaded only for
// --device cuda:N.
#pragma once

#include <string>

#include "core/base/status.h"
#include "worker/numerics/kernels/minibatch_ids.h"
#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/kernels/update.h"
#include "worker/numerics/tensors/late.h"

namespace chainfleet {

// Loads the module from beside the executable or from ../lib of it. Once, before the first torch call of the process
// (LibTorch looks its CUDA hooks up only once). FAILED_PRECONDITION / NO_DEVICE says what is missing.
absl::Status LoadCudaModule();

// The fused update of kernels/update.h on GPU `device`, without a wait. The module must be loaded.
Late<RowOutcome> LangevinUpdateCuda(const UpdateBuffers& buffers, const RowStep* steps, int device);

// A pass of kernels/pass.h, likewise.
Late<PassOutcome> RunPassCuda(Pass pass, const PassBuffers& buffers, const PassRow* rows, int device);

// The ids [rows, n] of the batches of the steps `keys`, likewise. Both are memory of the GPU.
void FillIdsCuda(const BatchDraw& draw, const StepKey* keys, int64_t rows, int64_t* ids, int device);

}  // namespace chainfleet
