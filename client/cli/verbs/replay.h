// Samples draws of a job a second time, to see that they are what the job file says.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "chainfleet/v1/jobs.pb.h"
#include "client/cli/invocation.h"
#include "client/lib/client.h"
#include "client/lib/draw_reader.h"
#include "core/base/status.h"
#include "core/domain/draw.h"

namespace chainfleet {

using DrawDigests = std::map<std::pair<int32_t, int64_t>, DigestHex>;  // by chain and index of the draw

// Indices of the first and the last draw.
struct DrawRange {
  int64_t first = 0, last = std::numeric_limits<int64_t>::max();
};

// Adds the digest of step, weight and values of each draw of the segment that is in the range.
void AddDigests(const CheckedSegment& segment, const DrawRange& range, DrawDigests* digests);

// Returns the request for a copy of the job that samples the draws of `digests`. If they are of one chain, the copy
// samples this chain only, and the server stops the copy after the last of these draws. REQUIRES: there are digests.
v1::CreateJobRequest CopyRequest(const v1::Job& job, const DrawDigests& digests);

// Compares `digests`, those of draws of the job, with those of a copy of the job. Stops the copy once it has these
// draws and deletes it at the end, also after an error or Ctrl-C. DATA_LOSS names the first chain and draw that differ,
// and the copy, which then stays. FAILED_PRECONDITION: the server cannot sample one chain. ABORTED: a chain of the copy
// failed or was cancelled. CANCELLED / INTERRUPTED. REQUIRES: there are digests.
absl::Status Replay(const Invocation& run, Client* client, const v1::Job& job, const DrawDigests& digests);

}  // namespace chainfleet
