#include "client/lib/client_options.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/environment.h"
#include "core/base/host_port.h"

namespace chainfleet {
absl::StatusOr<std::vector<std::string>> ParseAddresses(const std::string& text) {
  std::vector<std::string> addresses;
  for (const auto part : absl::StrSplit(text, ',')) {
    std::string address(absl::StripAsciiWhitespace(part));
    const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (!parsed.ok()) return Annotate(parsed.status(), "server address");
    if (parsed->port == 0)
      return absl::InvalidArgumentError(absl::StrCat("server address ", address, ": port 0 is not allowed"));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

absl::StatusOr<ClientOptions> ClientOptionsFromEnvironment(const std::string& address) {
  ClientOptions options;
  const std::string text = address.empty() ? EnvironmentVariable("CHAINFLEET_ADDRESS") : address;
  if (!text.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(options.addresses, ParseAddresses(text));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(options.token, OpenCallerToken());
  options.tls = ClientTlsFiles();
  CHAINFLEET_RETURN_IF_ERROR(CheckTlsFiles(options.tls));
  return options;
}

}  // namespace chainfleet
