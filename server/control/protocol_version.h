// Which workers a server of this build talks to: those of its own protocol and of the one before.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

struct SpokenVersions {
  int32_t oldest = kOldestProtocolVersion, newest = kProtocolVersion;
};

// FAILED_PRECONDITION / VERSION_MISMATCH with the numbers of both sides.
absl::Status CheckProtocolVersion(const std::string& worker, int32_t version, SpokenVersions spoken = {});

}  // namespace chainfleet
