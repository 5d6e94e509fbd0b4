// The interface between this program and libchainfleet_cuda.so, which is built separately and may be of another
// release. Raw pointers and plain values only, C++17.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "worker/numerics/kernels/minibatch_ids.h"
#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/kernels/update.h"

namespace chainfleet {

// A warp of the GPU processes a tile: adjacent parameters of one tensor. A tile ends at a multiple of kTileSize in p,
// or with its tensor. It is therefore never empty, and the rest of the 16 bytes at its end is padding.
inline constexpr int64_t kTileSize = 2048;

// The tiles of one layout, in device memory.
struct CudaTiles {
  const TensorSpan* tile = nullptr;
  int64_t count = 0;
  PassOutcome* seen = nullptr;  // [rows][count]; a launch writes all of it before it reads any
};

// The update of update.h and the passes of pass.h on the GPU. Pointers of `buffers` (except `spans`, which is not used)
// and `outcomes` are device memory. `stream` is a cudaStream_t. Asynchronous; returns a cudaError_t. The bits of a row
// depend only on the row, its scalars and the card.
using LangevinUpdateCudaFunction = int (*)(const UpdateBuffers* buffers, const CudaTiles* tiles, const RowStep* steps,
                                           RowOutcome* outcomes, void* stream);
inline constexpr char kLangevinUpdateCudaSymbol[] = "chainfleet_cuda_langevin_update";
using RunPassCudaFunction = int (*)(int pass, const PassBuffers* buffers, const CudaTiles* tiles, const PassRow* rows,
                                    PassOutcome* outcomes, void* stream);
inline constexpr char kRunPassCudaSymbol[] = "chainfleet_cuda_run_pass";

// Writes ids [rows, n] for the steps `keys` [rows]; all but `draw` is device memory. Asynchronous; returns a
// cudaError_t.
using FillIdsCudaFunction = int (*)(const BatchDraw* draw, const StepKey* keys, int64_t rows, int64_t* ids,
                                    void* stream);
inline constexpr char kFillIdsCudaSymbol[] = "chainfleet_cuda_fill_ids";

// Raise when a kernel changes its behaviour for arguments of the same types.
inline constexpr uint64_t kCudaRevision = 3;

#define CHAINFLEET_COUNT(Name) +1
inline constexpr size_t kNumPasses = CHAINFLEET_PASSES(CHAINFLEET_COUNT);
#undef CHAINFLEET_COUNT

// The module exports the value of this number at its build.
inline constexpr uint64_t kCudaAbi = [] {
  uint64_t abi = kCudaRevision;
  for (const size_t size : {sizeof(CudaTiles), sizeof(UpdateBuffers), sizeof(RowStep), sizeof(RowOutcome),
                            sizeof(BatchDraw), sizeof(PassBuffers), sizeof(PassRow), sizeof(PassOutcome), kNumPasses}) {
    abi = abi * 1009 + size;
  }
  return abi;
}();
inline constexpr char kCudaAbiSymbol[] = "chainfleet_cuda_abi";

}  // namespace chainfleet
