// Checks protocol versions: the server accepts workers of its own version and of the previous one.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

struct SpokenVersions {
  int32_t oldest = kOldestProtocolVersion, newest = kProtocolVersion;
};

// FAILED_PRECONDITION / VERSION_MISMATCH names the versions of both sides.
absl::Status CheckProtocolVersion(const std::string& worker, int32_t version, SpokenVersions spoken = {});

}  // namespace chainfleet
