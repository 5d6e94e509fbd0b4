// One caller's list of blocking calls, done by several threads.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/executor.h"

namespace chainfleet {

// Runs item(i) for each i in [0, count), once, in no promised order: here, and on up to `helpers` threads that the
// executor has to spare. Returns when all have ended; waits for no thread that has not begun, so an executor that is
// busy, or that nobody runs, holds nothing up.
void ShareWork(Executor* executor, int helpers, int64_t count, std::function<void(int64_t)> item);

}  // namespace chainfleet
