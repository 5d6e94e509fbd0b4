// The networks in a file of weights.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

// Returns a state_dict, as the bytes of a safetensors file, for each draw of kind theta in a file of `chainfleet export
// --format safetensors`, in their order; for any other file that file alone. `bytes` is a safetensors file, else
// INVALID_ARGUMENT, also for draws with weights, which the networks of an ensemble do not have.
absl::StatusOr<std::vector<std::string>> StateDictsOf(const std::string& bytes);

}  // namespace chainfleet
