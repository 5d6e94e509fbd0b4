// The callback of an asynchronous call of the coordinator.
#pragma once

#include <functional>
#include <utility>

#include "core/base/executor.h"
#include "core/base/status.h"

namespace chainfleet {

// Runs on the executor, exactly once, never inside the call that takes it.
template <typename T>
using Reply = std::function<void(absl::StatusOr<T>)>;

// Sends `answer` to `done` in a separate task, so that the sender may hold a lock.
template <typename T>
void Send(Executor* executor, const Reply<T>& done, absl::StatusOr<T> answer) {
  executor->Schedule([done, answer = std::move(answer)]() mutable { done(std::move(answer)); });
}

}  // namespace chainfleet
