#include "worker/numerics/tensors/single_threaded.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>

#include "core/base/check.h"

// Part of MKL, which LibTorch for other processors than x86-64 does not have.
extern "C" int MKL_Set_Num_Threads_Local(int threads) __attribute__((weak));

namespace chainfleet {
namespace {

// Sets the number of threads of MKL in this thread, 0: that of the process. Returns the former one. MKL does not read
// OpenMP's number once at::set_num_threads has set its own, and then plans products for that, with other bits.
int SetMklThreads(int threads) { return MKL_Set_Num_Threads_Local == nullptr ? 0 : MKL_Set_Num_Threads_Local(threads); }

}  // namespace

void RunSingleThreaded(int64_t count, const std::function<void(int64_t)>& function) {
  // A range of one element would run outside any parallel region.
  at::parallel_for(0, std::max<int64_t>(count, 2), 1, [&](int64_t first, int64_t last) {
    // Ask LibTorch first: when it first sees a thread, it sets that thread's number of threads, and later would
    // overwrite the value set here.
    const int threads = at::get_num_threads();
    // Restores the thread number of this thread's part of the region. Kernels plan for that number; a kernel that
    // planned for more threads than the region grants would never end.
    struct Restore {
      int threads, of_mkl;
      ~Restore() {
        omp_set_num_threads(threads);
        SetMklThreads(of_mkl);
      }
    } const restore{threads, SetMklThreads(1)};
    omp_set_num_threads(1);
    for (int64_t i = first; i < std::min(last, count); ++i) {
      function(i);
      CHAINFLEET_CHECK(omp_get_max_threads() == 1) << "something inside asked for threads";
    }
  });
}

}  // namespace chainfleet
