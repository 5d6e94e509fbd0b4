// Many small ATen computations side by side, each on one thread.
#pragma once

#include <cstdint>
#include <functional>

namespace chainfleet {

// Runs `function(i)` for each i < count; ATen and oneDNN inside it use that one thread, so that no bit depends on how
// many there are. Exceptions reach the caller, once all are done.
void RunSingleThreaded(int64_t count, const std::function<void(int64_t)>& function);

}  // namespace chainfleet
