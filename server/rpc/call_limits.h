// Bounds on what callers may take of the gRPC port before and while a call runs. docs/reference/limits.md tells them to
// operators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "core/base/limits.h"

namespace chainfleet::limits {

// Requests that are still received after an interval. Another 64 MiB are kept for what a network brings until the next
// look: operators are told 256 MiB.
inline constexpr int64_t kReceivingBytes = 192 * kMiB;
inline constexpr int64_t kReceivingCallBytes = 16 * kKiB;  // of a call without its request
inline constexpr absl::Duration kReceiveInterval = absl::Milliseconds(25);
inline constexpr absl::Duration kReceiveDeadline = absl::Seconds(30);  // from the headers to a whole request
// Requests that are being answered and replies that are not sent yet.
inline constexpr int64_t kBytesInFlight = 1024 * kMiB;
inline constexpr int64_t kConnectionBytesInFlight = kBytesInFlight / 2;
inline constexpr int64_t kFreeBytes = 64 * kKiB;  // of a message: smaller ones are not counted
// Window of a stream that nobody reads. A read that is under way opens it as far as its message is long.
inline constexpr int64_t kStreamWindowBytes = 64 * kKiB;

// Refused tokens of one address: so many at once, then one each second; further ones are answered later and later.
inline constexpr double kFreeRefusals = 60;
inline constexpr absl::Duration kRefusalDelay = absl::Milliseconds(200);
inline constexpr absl::Duration kMaxRefusalDelay = absl::Seconds(2);
inline constexpr size_t kRefusedPeers = 4096;  // addresses that are remembered

// Calls of one connection that its client cancels. A connection with more of them is cut: gRPC 1.51 spends memory on
// each call that is reset (CVE-2023-44487).
inline constexpr int kCancelledCalls = 1000;
inline constexpr absl::Duration kCancelledWindow = absl::Seconds(10);

// Connections.
inline constexpr int kMaxConnections = 4096;
inline constexpr int kSilentConnections = 64;  // that have not sent the HTTP/2 preface
inline constexpr absl::Duration kSilence = absl::Seconds(10);
inline constexpr int kReceiveBufferBytes = 512 * 1024;  // of the kernel, for each: a cut connection is read to its end
inline constexpr absl::Duration kIdleConnection = absl::Minutes(5);  // without a call
inline constexpr int kMinReservedDescriptors = 128;                  // for files, stores and metrics

static_assert(kReceivingBytes + kBytesInFlight <= kServerRpcMemoryBytes, "gRPC holds every message that is admitted");
static_assert(kMaxMessageBytes <= kReceivingBytes && kMaxMessageBytes <= kConnectionBytesInFlight,
              "the largest message is admitted when no other is under way");

}  // namespace chainfleet::limits
