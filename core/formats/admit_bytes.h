// Lets a caller admit or refuse memory before a decoder takes it, because the size of packed content does not bound its
// unpacked size.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/status.h"

namespace chainfleet {

// Admits `bytes` more. An error, usually RESOURCE_EXHAUSTED, refuses them and ends the decoding.
using AdmitBytes = std::function<absl::Status(int64_t bytes)>;

inline absl::Status AdmitAll(int64_t) { return absl::OkStatus(); }

}  // namespace chainfleet
