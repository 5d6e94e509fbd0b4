// HOST:PORT, as people, flags and workers write addresses.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Cut at the last colon, so an IPv6 host keeps its colons, and its brackets.
struct HostPort {
  std::string host;  // "10.0.0.5", "db.example", "[::1]"
  int port = 0;

  std::string BareHost() const;  // without brackets, as name look-ups want it
  // True for a wildcard address (every interface of the host), which nobody can dial.
  bool is_any_host() const { return host == "0.0.0.0" || host == "[::]"; }
};

// INVALID_ARGUMENT quoting `text`: it has no host, or no port from 0 to 65535.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

}  // namespace chainfleet
