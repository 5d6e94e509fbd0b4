// Checks a TorchScript file without LibTorch.
#pragma once

#include "core/base/byte_source.h"
#include "core/base/status.h"

namespace chainfleet {

// INVALID_ARGUMENT unless `file` is a zip archive of code and tensors as torch.jit.save writes it, with correct CRCs,
// and no code contains the name of an operator that opens files (save, from_file). The check guards against mistakes,
// not against attackers. Only a worker can tell whether the code is a network. Keeps one member of code in memory.
absl::Status CheckTorchScript(const ByteSource& file);

}  // namespace chainfleet
