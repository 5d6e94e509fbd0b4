// Limits on one tenant's share of a server.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/status.h"
#include "server/control/job_table.h"

namespace chainfleet {

struct TenantLimits {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t jobs = kNone;    // jobs that are not deleted
  int64_t chains = kNone;  // chains of jobs that have not ended
  // Bytes of the tenant's committed draws, estimated from the parameters of the networks, and of data sets and models.
  int64_t stored_bytes = kNone;
};

// The jobs, chains and bytes that a tenant requests in addition to its holdings.
struct TenantRequest {
  std::string tenant;
  std::string request_id;  // request id of the job, or empty; a job that exists already counts once
  int64_t jobs = 0, chains = 0, bytes = 0;
};

struct TenantHoldings {
  const JobTable& jobs;       // for all tenants
  int64_t content_bytes = 0;  // bytes of the tenant's data sets and models
};

// RESOURCE_EXHAUSTED / TENANT_LIMIT, naming the limit, the tenant's holdings and what to do. Reads all jobs.
absl::Status CheckTenantLimits(const TenantLimits& limits, const TenantHoldings& holdings,
                               const TenantRequest& request);

}  // namespace chainfleet
