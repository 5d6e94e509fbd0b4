// Bounds of every request to S3.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/limits.h"

namespace chainfleet::limits {

inline constexpr int kS3Attempts = 3;  // attempts of a request before its caller gets an error
inline constexpr absl::Duration kS3ConnectTimeout = absl::Seconds(3);
inline constexpr absl::Duration kS3Timeout = absl::Seconds(10);  // for a small request, or a stall in a large one
inline constexpr absl::Duration kS3CompleteTimeout = absl::Seconds(60);  // the server may copy the parts of an object
inline constexpr int64_t kS3BytesPerSecond = kMiB;                       // slower transfers time out
inline constexpr int64_t kS3MaxReplyBytes = 4 * kMiB;                    // a page of 1,000 keys, or an error
inline constexpr int64_t kS3MultipartBytes = 64 * kMiB;                  // larger objects are written in parts
inline constexpr int64_t kS3PartBytes = 32 * kMiB;
inline constexpr size_t kS3MaxListed = 10'000'000;  // names of one listing, in memory

static_assert(kS3PartBytes <= kS3MultipartBytes && kMaxBlobBytes / kS3PartBytes <= 10'000,
              "S3 takes at most 10,000 parts of an object");

}  // namespace chainfleet::limits
