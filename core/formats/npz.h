// NumPy's .npz: a zip archive of .npy files, by libzip.
#pragma once

#include <map>
#include <string>

#include "core/base/status.h"
#include "core/formats/array.h"

namespace chainfleet {

// By array name, ".npy" taken off. INVALID_ARGUMENT naming the member at fault.
absl::StatusOr<std::map<std::string, Array>> ReadNpz(const std::string& bytes);

// Stored without compression, as numpy.savez does. INTERNAL if libzip fails.
absl::StatusOr<std::string> WriteNpz(const std::map<std::string, Array>& arrays);

}  // namespace chainfleet
