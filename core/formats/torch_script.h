// Checks of a TorchScript file that need no LibTorch.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// INVALID_ARGUMENT unless `bytes` are a zip archive whose members match their CRCs and are code and tensors, as
// torch.jit.save writes them, and none of its code has the name of an operator that opens files (save, from_file).
// The check guards against mistakes, not against attackers. Only a worker can tell whether the code is a network.
absl::Status CheckTorchScript(const std::string& bytes);

}  // namespace chainfleet
