// A CUDA module that has every function and another ABI.
#include "worker/numerics/kernels/cuda_abi.h"

extern "C" {
extern const uint64_t chainfleet_cuda_abi;
const uint64_t chainfleet_cuda_abi = chainfleet::kCudaAbi + 1;
int chainfleet_cuda_langevin_update() { return 0; }
int chainfleet_cuda_run_pass() { return 0; }
int chainfleet_cuda_fill_ids() { return 0; }
}
