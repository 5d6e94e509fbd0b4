// Loads the TorchScript file of a user, who may be hostile. Nothing of the file runs before all its operators are known
// to compute on tensors only.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

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

inline constexpr char kScriptPath[] = "model.torchscript";

}  // namespace chainfleet
