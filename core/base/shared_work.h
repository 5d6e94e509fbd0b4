// Spreads one caller's list of blocking calls over several threads.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/executor.h"

namespace chainfleet {

// Runs item(i) once for each i in [0, count), in no promised order, on the calling thread and on up to `helpers`
// threads of the executor. Returns when all items have ended. ShareWork does not wait for threads that have not
// started, so a busy or stopped executor does not delay the caller.
void ShareWork(Executor* executor, int helpers, int64_t count, std::function<void(int64_t)> item);

}  // namespace chainfleet
