// The agreement between this program and libchainfleet_cuda.so, which is built apart and may be of another release.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/kernels/update.h"

namespace chainfleet {

// To be raised when a kernel does something else with arguments of the same types.
inline constexpr uint64_t kCudaRevision = 1;

// The module exports this number as it was when the module was built.
inline constexpr uint64_t kCudaAbi = [] {
  uint64_t abi = kCudaRevision;
  for (const size_t size :
       {sizeof(TensorSpan), sizeof(UpdateBuffers), sizeof(RowStep), sizeof(RowOutcome), sizeof(PassBuffers),
        sizeof(PassRow), sizeof(PassOutcome), static_cast<size_t>(Pass::kDiagonalDraw)}) {
    abi = abi * 1009 + size;
  }
  return abi;
}();
inline constexpr char kCudaAbiSymbol[] = "chainfleet_cuda_abi";

}  // namespace chainfleet
