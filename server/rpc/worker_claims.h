// Checks the strings that a worker reports about itself: they reach terminals of other tenants, logs, dashboards and
// Prometheus.
#pragma once

#include "chainfleet/v1/worker.pb.h"
#include "core/base/status.h"

namespace chainfleet {

// INVALID_ARGUMENT / INVALID_FIELD naming the field. Ids, hosts and devices are up to 253 characters of
// [A-Za-z0-9._:@-], and [] for IPv6; a metrics address is HOST:PORT. Devices are at most 64, chains held and released
// at most 16,384 together, a reason at most 64 KiB.
absl::Status CheckClaims(const v1::JoinRequest& request);
absl::Status CheckClaims(const v1::SynchronizeRequest& request);
absl::Status CheckClaims(const v1::CommitProgressRequest& request);
absl::Status CheckClaims(const v1::ShardUpdate::Hello& hello);

}  // namespace chainfleet
