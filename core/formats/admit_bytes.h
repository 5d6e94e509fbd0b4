// Memory that a decoder is about to take, asked for before it takes it: packed content says nothing about the size of
// what it unpacks to.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/status.h"

namespace chainfleet {

// An error, RESOURCE_EXHAUSTED as a rule, refuses `bytes` more and ends the decoding.
using AdmitBytes = std::function<absl::Status(int64_t bytes)>;

inline absl::Status AdmitAll(int64_t) { return absl::OkStatus(); }

}  // namespace chainfleet
