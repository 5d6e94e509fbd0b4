// Samples a job a second time, to see that its draws are what its job file says.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "client/lib/client.h"
#include "core/base/status.h"

namespace chainfleet {

// Compares step, weight and values of each draw in `records`, of job `name`, with those of a job that it makes with the
// same spec and deletes again. Returns their number. DATA_LOSS names the first chain and draw that differ, and the job,
// which then stays. FAILED_PRECONDITION: the data set or a model has other content by now, or there are no draws.
absl::StatusOr<int64_t> Replay(Client* client, const std::string& name, const std::vector<v1::SegmentRecord>& records,
                               absl::Duration timeout);

}  // namespace chainfleet
