// gzip members in memory, by zlib.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/formats/admit_bytes.h"

namespace chainfleet {

// True if `bytes` starts with gzip's magic.
bool IsGzip(const std::string& bytes);

// The content of a gzip file of one member. INVALID_ARGUMENT if it is cut, damaged or followed by other bytes;
// RESOURCE_EXHAUSTED above limits::kMaxBlobBytes; errors of `admit`. The content is measured before memory is taken for
// it.
absl::StatusOr<std::string> Gunzip(const std::string& bytes, const AdmitBytes& admit = AdmitAll);

}  // namespace chainfleet
