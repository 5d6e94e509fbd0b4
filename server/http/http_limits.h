// Bounds on the HTTP port. docs/reference/limits.md explains them to operators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "core/base/limits.h"

namespace chainfleet::limits {

// Connections.
inline constexpr unsigned kHttpConnections = 1024;
inline constexpr unsigned kHttpConnectionsOfAHost = kHttpConnections * 3 / 4;
inline constexpr unsigned kHttpSilence = 10;                    // seconds without a byte, while none is due from us
inline constexpr size_t kHttpHeaderBytes = 32 * kKiB;           // buffers of a connection: request line and headers
inline constexpr absl::Duration kHttpWatch = absl::Seconds(1);  // time between two looks at all requests

// Requests.
inline constexpr int64_t kHttpBodyBytes = kMaxMessageBytes;
inline constexpr int64_t kHttpSkippedBytes =
    2 * kHttpBodyBytes;  // bytes of a refused body, so that its client reads why
inline constexpr absl::Duration kHttpReceive = absl::Seconds(30);         // from the headers to the complete body
inline constexpr absl::Duration kHttpSend = absl::Seconds(60);            // until the client has read the reply
inline constexpr absl::Duration kHttpFarewell = absl::Milliseconds(200);  // for a client to read at the server's end
inline constexpr int kJsonDepth = 64;
inline constexpr int kJsonValues = 20'000;  // in a body, besides the elements of its tensors

inline constexpr size_t kStreamBlockBytes = 16 * kKiB;  // bytes of a streamed reply, written at a time

// Memory of all requests and replies together, besides what their calls take. A JSON body counts several times while it
// is read, for its text and the numbers in it, and once more as the message that it becomes.
inline constexpr int64_t kHttpBytes = 512 * kMiB;  // a host holds no more of them than it leaves free
inline constexpr int64_t kJsonFactor = 8;
inline constexpr int64_t kReplyFactor = 5;
inline constexpr int64_t kJsonMessageBytes = kHttpBytes / 2 - kHttpBodyBytes * (1 + kJsonFactor);
static_assert(kJsonMessageBytes > 0, "the largest JSON body fits while no other is held");
static_assert(kHttpSkippedBytes > kHttpBodyBytes, "a client that sent too much reads the refusal");
static_assert(kHttpSend >= kHttpReceive, "a reply may be as slow as its request");

}  // namespace chainfleet::limits
