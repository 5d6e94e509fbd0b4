#include "worker/numerics/tensors/single_threaded.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>

#include "core/base/check.h"

namespace chainfleet {

void RunSingleThreaded(int64_t count, const std::function<void(int64_t)>& function) {
  // A range of one element would run outside any parallel region.
  at::parallel_for(0, std::max<int64_t>(count, 2), 1, [&](int64_t first, int64_t last) {
    // Ask LibTorch first: when it first sees a thread, it sets that thread's number of threads, and later would
    // overwrite the value set here.
    const int threads = at::get_num_threads();
    // Restores the thread number of this thread's part of the region. Kernels plan for that number; a kernel that
    // planned for more threads than the region grants would never end.
    struct Restore {
      int threads;
      ~Restore() { omp_set_num_threads(threads); }
    } const restore{threads};
    omp_set_num_threads(1);
    for (int64_t i = first; i < std::min(last, count); ++i) {
      function(i);
      CHAINFLEET_CHECK(omp_get_max_threads() == 1) << "something inside asked for threads";
    }
  });
}

}  // namespace chainfleet
