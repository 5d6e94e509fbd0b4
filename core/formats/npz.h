// NumPy's .npz: a zip archive of .npy files, by libzip.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "core/base/status.h"
#include "core/formats/admit_bytes.h"
#include "core/formats/array.h"
#include "core/formats/streamed_array.h"

namespace chainfleet {

// Arrays by name, without ".npy". Decodes only those of `names` that exist; all arrays if `names` is empty.
// INVALID_ARGUMENT naming the member at fault; RESOURCE_EXHAUSTED if what is read is over `max_bytes` in all; errors of
// `admit`.
absl::StatusOr<std::map<std::string, Array>> ReadNpz(const std::string& bytes,
                                                     const std::vector<std::string>& names = {},
                                                     int64_t max_bytes = limits::kMaxBlobBytes,
                                                     const AdmitBytes& admit = AdmitAll);

// Stored without compression, as numpy.savez does. INTERNAL if libzip fails.
absl::StatusOr<std::string> WriteNpz(const std::map<std::string, Array>& arrays);

// The same into the file `path`, replacing what is there, and each of `others` (name, content) beside the arrays.
// Errors of an array; RESOURCE_EXHAUSTED or INTERNAL naming the path.
absl::Status WriteNpzFile(const std::string& path, const std::vector<StreamedArray>& arrays,
                          const std::vector<std::pair<std::string, std::string>>& others);

}  // namespace chainfleet
