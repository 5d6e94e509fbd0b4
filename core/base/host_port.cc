#include "core/base/host_port.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace chainfleet {

std::string HostPort::BareHost() const {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

absl::StatusOr<HostPort> ParseHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon == 0 || colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not HOST:PORT, as in 127.0.0.1:7400"));
  }
  return HostPort{text.substr(0, colon), port};
}

}  // namespace chainfleet
