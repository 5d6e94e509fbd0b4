// Exceptions of LibTorch and of allocation become statuses at the edges of this folder: here.
#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// What `function` returns, a status or a StatusOr. RESOURCE_EXHAUSTED if memory was short, INTERNAL for all else that
// it throws; `what` names the work: "a batch of chains".
template <typename Function>
auto CatchTorch(const std::string& what, const Function& function) -> decltype(function()) {
  const auto out_of_memory = [&what](const std::string& why) {
    return absl::ResourceExhaustedError("out of memory in " + what + ": " + why);
  };
  try {
    return function();
  } catch (const std::bad_alloc& error) {
    return out_of_memory(error.what());
  } catch (const c10::OutOfMemoryError& error) {
    return out_of_memory(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string why = error.what_without_backtrace();
    // The CPU allocator throws a plain c10::Error.
    if (why.find("can't allocate memory") != std::string::npos) return out_of_memory(why);
    return absl::InternalError("LibTorch failed in " + what + ": " + why);
  } catch (const std::exception& error) {
    return absl::InternalError(what + " failed: " + error.what());
  }
}

}  // namespace chainfleet
