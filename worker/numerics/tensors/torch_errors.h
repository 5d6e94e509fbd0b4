// Converts exceptions of LibTorch and of allocation to statuses.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The device no longer works, at least for this process: an illegal address, a failed launch, broken memory. All later
// work on it fails, so the process must end.
inline constexpr char kDeviceLost[] = "DEVICE_LOST";

// Converts the exception being handled: RESOURCE_EXHAUSTED if memory was short, also in a library other than LibTorch;
// INTERNAL / DEVICE_LOST after a fault of the GPU; INVALID_ARGUMENT for indices out of range; else INTERNAL. `what`
// names the work: "a batch of chains". Call only inside a catch block.
absl::Status StatusOfException(const std::string& what);

// Returns the result of `function` (a status or a StatusOr), or the status of its exception.
template <typename Function>
auto CatchTorch(const std::string& what, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (...) {
    return StatusOfException(what);
  }
}

}  // namespace chainfleet
