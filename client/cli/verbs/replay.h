// Samples a job a second time, to see that its draws are what its job file says.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "client/lib/client.h"
#include "client/lib/draw_reader.h"
#include "core/base/status.h"
#include "core/domain/draw.h"

namespace chainfleet {

using DrawDigests = std::map<std::pair<int32_t, int64_t>, DigestHex>;  // by chain and index of the draw

// Adds the digest of step, weight and values of each draw.
void AddDigests(const CheckedSegment& segment, DrawDigests* digests);

// Compares `digests`, those of the draws that `asked` names, with those of a job that it makes with the same spec and
// deletes again. DATA_LOSS names the first chain and draw that differ, and the job, which then stays.
// FAILED_PRECONDITION: there are no draws. ABORTED: the other job did not succeed.
absl::Status Replay(Client* client, const v1::ListSegmentsRequest& asked, const DrawDigests& digests,
                    absl::Duration timeout);

}  // namespace chainfleet
