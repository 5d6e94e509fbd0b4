// The agreement between this program and libchainfleet_cuda.so, which is built apart and may be of another release.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "worker/numerics/kernels/pass_list.h"
#include "worker/numerics/kernels/update.h"

namespace chainfleet {

// To be raised when a kernel does something else with arguments of the same types.
inline constexpr uint64_t kCudaRevision = 1;

#define CHAINFLEET_COUNT(Name) +1
inline constexpr size_t kNumPasses = CHAINFLEET_PASSES(CHAINFLEET_COUNT);
#undef CHAINFLEET_COUNT

// The module exports this number as it was when the module was built.
inline constexpr uint64_t kCudaAbi = [] {
  uint64_t abi = kCudaRevision;
  for (const size_t size : {sizeof(TensorSpan), sizeof(UpdateBuffers), sizeof(RowStep), sizeof(RowOutcome),
                            sizeof(PassBuffers), sizeof(PassRow), sizeof(PassOutcome), kNumPasses}) {
    abi = abi * 1009 + size;
  }
  return abi;
}();
inline constexpr char kCudaAbiSymbol[] = "chainfleet_cuda_abi";

}  // namespace chainfleet
