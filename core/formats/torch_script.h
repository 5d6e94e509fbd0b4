// Checks a TorchScript file without LibTorch.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// INVALID_ARGUMENT unless `bytes` are a zip archive of code and tensors as torch.jit.save writes it, with correct CRCs,
// and no code contains the name of an operator that opens files (save, from_file). The check guards against mistakes,
// not against attackers. Only a worker can tell whether the code is a network.
absl::Status CheckTorchScript(const std::string& bytes);

}  // namespace chainfleet
