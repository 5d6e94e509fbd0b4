// Where the server is and how patient a client is with it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/status.h"

namespace chainfleet {

inline constexpr char kDefaultAddress[] = "127.0.0.1:7400";

struct ClientOptions {
  std::vector<std::string> addresses = {kDefaultAddress};  // tried in turn when one is not available
  std::string token;                                       // sent as "authorization: Bearer TOKEN"; empty: none
  absl::Duration timeout = absl::Seconds(30);              // of one call with all its attempts, and of an outage
  absl::Duration patience = absl::Minutes(1);              // of a stream that had begun, without a word from any server
  uint64_t seed = 0;                                       // of the ids of calls and the jitter of the backoff
  // Called once for each call that is repeated for longer than a second, with the error of its newest attempt.
  std::function<void(const absl::Status&)> on_outage = [](const absl::Status&) {};
};

// "host:port[,host:port...]". INVALID_ARGUMENT naming the part that is not host:port.
absl::StatusOr<std::vector<std::string>> ParseAddresses(const std::string& text);

// `address` if not empty, else CHAINFLEET_ADDRESS, else kDefaultAddress; the token from CHAINFLEET_TOKEN or the file
// that CHAINFLEET_TOKEN_FILE names. INVALID_ARGUMENT (address), NOT_FOUND (token file).
absl::StatusOr<ClientOptions> ClientOptionsFromEnvironment(const std::string& address);

}  // namespace chainfleet
