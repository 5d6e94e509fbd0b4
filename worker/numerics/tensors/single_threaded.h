// Runs many small ATen computations in parallel, each on one thread.
#pragma once

#include <cstdint>
#include <functional>

namespace chainfleet {

// Runs `function(i)` for each i < count. ATen and oneDNN use only that thread inside it, so no bit depends on the number
// of threads. Exceptions reach the caller after all calls are done.
void RunSingleThreaded(int64_t count, const std::function<void(int64_t)>& function);

}  // namespace chainfleet
