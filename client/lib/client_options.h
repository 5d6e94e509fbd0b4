// The addresses of the server, and the client's timeouts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/reread.h"
#include "core/base/status.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

inline constexpr char kDefaultAddress[] = "127.0.0.1:7400";

struct ClientOptions {
  std::vector<std::string> addresses = {kDefaultAddress};  // tried in turn if one is unavailable
  Reread<std::string> token;                               // sent as "authorization: Bearer TOKEN"; empty: none
  // Returns a token in place of `refused`, which the server did not take; null: `token` is read again.
  std::function<absl::StatusOr<std::string>(const std::string& refused)> renew_token;
  TlsFiles tls;                                // plaintext if there is none
  absl::Duration timeout = absl::Seconds(30);  // for one call with all its attempts, and for an outage
  // For one upload or download with all its attempts. nullopt: 30 minutes, and no limit for a backup or a restore.
  std::optional<absl::Duration> transfer_timeout;
  absl::Duration patience = absl::Minutes(1);  // for an open stream, without an answer from any server
  uint64_t seed = 0;                           // for the ids of calls and the backoff's jitter
  // Called once for each call that is retried for longer than a second, with the error of its newest attempt.
  std::function<void(const absl::Status&)> on_outage = [](const absl::Status&) {};
};

// "host:port[,host:port...]". INVALID_ARGUMENT, naming the part that is not host:port.
absl::StatusOr<std::vector<std::string>> ParseAddresses(const std::string& text);

// `address` if it is not empty, else CHAINFLEET_ADDRESS, else kDefaultAddress. The token comes from CHAINFLEET_TOKEN or
// from the file in CHAINFLEET_TOKEN_FILE, the TLS files from ClientTlsFiles. INVALID_ARGUMENT (address, TLS files),
// NOT_FOUND (a file).
absl::StatusOr<ClientOptions> ClientOptionsFromEnvironment(const std::string& address);

}  // namespace chainfleet
