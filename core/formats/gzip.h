// Unpacks gzip and zlib data in memory, with zlib.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/formats/admit_bytes.h"

namespace chainfleet {

// Returns true if `bytes` starts with gzip's magic.
bool IsGzip(const std::string& bytes);

// Returns the content of a gzip file with one member, or of a zlib stream. INVALID_ARGUMENT if the data is cut, damaged
// or followed by other bytes; RESOURCE_EXHAUSTED above limits::kMaxBlobBytes; errors of `admit`. Gunzip measures the
// content before taking memory for it.
absl::StatusOr<std::string> Gunzip(const std::string& bytes, const AdmitBytes& admit = AdmitAll);

}  // namespace chainfleet
