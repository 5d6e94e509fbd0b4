// Reads and writes NumPy's .npz, a zip archive of .npy files, with libzip.
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

// Returns arrays by name, without ".npy": those of `names` that exist, or all if `names` is empty.
// INVALID_ARGUMENT names the wrong member; RESOURCE_EXHAUSTED if the decoded arrays exceed `max_bytes` in total;
// errors of `admit`.
absl::StatusOr<std::map<std::string, Array>> ReadNpz(const std::string& bytes,
                                                     const std::vector<std::string>& names = {},
                                                     int64_t max_bytes = limits::kMaxBlobBytes,
                                                     const AdmitBytes& admit = AdmitAll);

// Stores without compression, as numpy.savez does; `others` are (name, content). INTERNAL if libzip fails.
absl::StatusOr<std::string> WriteNpz(const std::map<std::string, Array>& arrays,
                                     const std::vector<std::pair<std::string, std::string>>& others = {});

// Writes the arrays and `others` (name, content) to the file `path`, which it replaces. Returns errors of an array;
// RESOURCE_EXHAUSTED or INTERNAL name the path.
absl::Status WriteNpzFile(const std::string& path, const std::vector<StreamedArray>& arrays,
                          const std::vector<std::pair<std::string, std::string>>& others);

}  // namespace chainfleet
