// Exceptions of LibTorch and of allocation become statuses at the edges of this folder: here.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Of the exception being handled: RESOURCE_EXHAUSTED if memory was short, INTERNAL for all else; `what` names the work:
// "a batch of chains". Only inside a catch block.
absl::Status StatusOfException(const std::string& what);

// What `function` returns, a status or a StatusOr, or the status of what it throws.
template <typename Function>
auto CatchTorch(const std::string& what, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (...) {
    return StatusOfException(what);
  }
}

}  // namespace chainfleet
