// HOST:PORT, the form in which people, flags and workers write addresses.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The text is cut at its last colon, so an IPv6 host keeps its colons and its brackets.
struct HostPort {
  std::string host;  // "10.0.0.5", "db.example", "[::1]"
  int port = 0;

  std::string BareHost() const;  // without the brackets of IPv6, for name look-ups
  // True for a wildcard address (every interface of the host), which no client can dial.
  bool is_any_host() const { return host == "0.0.0.0" || host == "[::]"; }
};

// INVALID_ARGUMENT quotes `text` if the text has no host, or no port from 0 to 65535.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

}  // namespace chainfleet
