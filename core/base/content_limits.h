// Bounds on user input and on lists of user input, in addition to limits.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/limits.h"

namespace chainfleet::limits {

inline constexpr int64_t kMaxSpecBytes = 3 * kMiB;  // a job spec as a message
inline constexpr int64_t kPageBytes = 8 * kMiB;     // items of one page or reply after the first item
inline constexpr int64_t kMaxChannels = 65536;      // channels of a data set: each has a mean and a deviation
inline constexpr size_t kMaxViolations = 32;        // violations listed in one error
inline constexpr int64_t kMaxReplyBytes = kMaxMessageBytes - kMiB;  // values of one reply: the rest is names and frames
inline constexpr int64_t kCountedRowBytes = 16;    // a row's target, or its number in the request, besides its inputs
inline constexpr size_t kMaxFilesOfWeights = 256;  // init.weights of a job
inline constexpr size_t kMaxCharactersOfWeights = 2048;  // the names of these files together

static_assert(kPageBytes + kMaxSpecBytes <= kMaxMessageBytes, "a page with its largest item fits into a message");

}  // namespace chainfleet::limits
