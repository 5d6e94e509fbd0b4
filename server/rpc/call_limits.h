// Bounds on the gRPC port, before and while a call runs. docs/reference/limits.md explains them to operators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "core/base/limits.h"

namespace chainfleet::limits {

// Bytes of requests that are still being received after an interval. Another 64 MiB are kept for the bytes that arrive
// until the next check: the documented limit is 256 MiB.
inline constexpr int64_t kReceivingBytes = 192 * kMiB;
inline constexpr int64_t kReceivingCallBytes = 16 * kKiB;  // charged for each call, besides its request
inline constexpr absl::Duration kReceiveInterval = absl::Milliseconds(25);
inline constexpr absl::Duration kReceiveDeadline = absl::Seconds(30);  // from the headers to the complete request
// Requests that are being answered and replies that are not sent yet.
inline constexpr int64_t kBytesInFlight = 1024 * kMiB;
inline constexpr int64_t kConnectionBytesInFlight = kBytesInFlight / 2;
// Streams of inference: all that are open, and the requests of one that are read and not answered. A stream may keep
// the bytes of one more request that has not arrived completely.
inline constexpr size_t kInferenceStreams = 64, kStreamRequests = 8;
// Health watches, which need no token. A host holds no more than it leaves free, so half of them at most.
inline constexpr int64_t kHealthWatches = 1024;
inline constexpr int64_t kFreeBytes = 64 * kKiB;         // smaller messages are not counted
inline constexpr int64_t kUnmeasuredBytes = 512;         // requests that are smaller also when they are parsed
inline constexpr int64_t kStreamParsedBytes = 2 * kMiB;  // memory of a streamed message beyond its bytes
// HTTP/2 window of a stream without a pending read. A pending read opens it to the length of its message.
inline constexpr int64_t kStreamWindowBytes = 64 * kKiB;

// Refused tokens of one address: a burst of kFreeRefusals, then one each second. Beyond that, answers are delayed more
// and more.
inline constexpr double kFreeRefusals = 60;
inline constexpr absl::Duration kRefusalDelay = absl::Milliseconds(200);
inline constexpr absl::Duration kMaxRefusalDelay = absl::Seconds(2);
inline constexpr size_t kRefusedPeers = 4096;  // hosts remembered

// Bounds on lines of the audit log: for failed calls, and for calls that change something, of one caller. Refusals that
// many honest callers may meet at a time, and those of the HTTP and metrics ports, have the slow interval. All together
// are at most 2 kB a second, so one caller needs at least six days to fill the log.
inline constexpr int64_t kAuditLinesAtOnce = 60, kChangesAtOnce = 10'000;
inline constexpr absl::Duration kAuditLineInterval = absl::Seconds(1), kSlowLineInterval = absl::Seconds(10);

// Cancelled calls of one connection. A connection with more of them is cut: gRPC 1.51 spends memory on each call that
// is reset (CVE-2023-44487).
inline constexpr int kCancelledCalls = 1000;
inline constexpr absl::Duration kCancelledWindow = absl::Seconds(10);

// Calls of one tenant that are answered at a time, for each of reads, changes and reads of rows. Further ones wait.
inline constexpr int kTenantTurns = 4;

// Connections.
inline constexpr int kMaxConnections = 4096;
inline constexpr int kSilentConnections = 64;  // connections that have not sent the HTTP/2 preface
inline constexpr absl::Duration kSilence = absl::Seconds(10);
// kernel buffer of each connection; a cut connection is read to its end
inline constexpr int kReceiveBufferBytes = 512 * 1024;
inline constexpr absl::Duration kIdleConnection = absl::Minutes(5);  // without a call
inline constexpr int kMinReservedDescriptors = 128;                  // for files, stores and metrics

static_assert(kReceivingBytes + kBytesInFlight <= kServerRpcMemoryBytes, "gRPC holds every message that is admitted");
static_assert(kMaxMessageBytes <= kReceivingBytes && kMaxMessageBytes <= kConnectionBytesInFlight,
              "the largest message is admitted when no other is under way");

}  // namespace chainfleet::limits
