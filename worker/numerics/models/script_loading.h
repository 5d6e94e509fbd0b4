// Loads the TorchScript file of a user, who may be hostile. Nothing of the file runs before all its operators are known
// to compute on tensors only.
#pragma once

#include <ATen/core/Tensor.h>

#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace torch::jit {
struct Module;
}

namespace chainfleet {

// Returns the module of a .pt file. INVALID_ARGUMENT with a violation at model.torchscript: the file does not load,
// loading it would run its own code, or one of its functions uses an operator that is not known to compute on tensors,
// numbers and lists: one that opens or prints something, calls other processes, shows uninitialised memory, or is not
// an `aten` operator of LibTorch.
absl::StatusOr<torch::jit::Module> LoadScript(const std::string& bytes, at::Device device);

absl::Status RefusedScript(const std::string& why);

// The last line of an interpreter's message; it follows the traceback and names the error.
std::string LastLineOf(const std::string& message);

// Returns `run()`, or a violation that begins with `what`. Out-of-memory exceptions are rethrown: they are no fault of
// the module.
template <typename Function>
auto TryScript(const std::string& what, const Function& run) -> absl::StatusOr<decltype(run())> {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    // The CPU allocator's error has no type of its own.
    if (std::string(error.what_without_backtrace()).find("can't allocate memory") != std::string::npos) throw;
    return RefusedScript(absl::StrCat(what, ": ", LastLineOf(error.what_without_backtrace())));
  } catch (const std::exception& error) {
    return RefusedScript(absl::StrCat(what, ": ", LastLineOf(error.what())));
  }
}

}  // namespace chainfleet
