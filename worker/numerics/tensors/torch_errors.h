// Exceptions of LibTorch and of allocation become statuses at the edges of this folder: here.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The device does not work any more, for this process at least: an illegal address, a failed launch, broken memory.
// Whatever is asked of it from now on fails, so the process must end.
inline constexpr char kDeviceLost[] = "DEVICE_LOST";

// Turns the exception being handled into RESOURCE_EXHAUSTED if memory was short, of a library beside LibTorch too,
// INTERNAL / DEVICE_LOST after a fault of the GPU, INTERNAL for all else; `what` names the work: "a batch of chains".
// Only inside a catch block.
absl::Status StatusOfException(const std::string& what);

// Returns as `function` does, a status or a StatusOr, or the status of what it throws.
template <typename Function>
auto CatchTorch(const std::string& what, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (...) {
    return StatusOfException(what);
  }
}

}  // namespace chainfleet
