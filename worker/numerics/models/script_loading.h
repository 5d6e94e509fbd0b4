// Loads the TorchScript file of a user, who may be hostile: nothing of it runs before it is known to compute on tensors
// alone.
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

// The module of a .pt file. INVALID_ARGUMENT with a violation at model.torchscript if the file does not load, if
// loading it would run code of its own, or if a function of it uses an operator that is not known to compute on
// tensors, numbers and lists: one that opens or prints something, calls other processes, shows memory that was never
// written, or is not LibTorch's own `aten` one.
absl::StatusOr<torch::jit::Module> LoadScript(const std::string& bytes, at::Device device);

absl::Status RefusedScript(const std::string& why);

// The last line of an interpreter's message, which says what is wrong after a traceback.
std::string LastLineOf(const std::string& message);

// `run()`, or a violation that begins with `what`. Memory that is short is no fault of the module.
template <typename Function>
auto TryScript(const std::string& what, const Function& run) -> absl::StatusOr<decltype(run())> {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    // The CPU allocator's, of no type of its own.
    if (std::string(error.what_without_backtrace()).find("can't allocate memory") != std::string::npos) throw;
    return RefusedScript(absl::StrCat(what, ": ", LastLineOf(error.what_without_backtrace())));
  } catch (const std::exception& error) {
    return RefusedScript(absl::StrCat(what, ": ", LastLineOf(error.what())));
  }
}

}  // namespace chainfleet
