// Limits on the part that one tenant has of a shared server.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/status.h"
#include "server/control/job_table.h"

namespace chainfleet {

struct TenantLimits {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t jobs = kNone;    // that are not deleted
  int64_t chains = kNone;  // of jobs that have not ended
  // Bytes of its committed draws, estimated by the parameters of their networks, and of the data and models it put.
  int64_t stored_bytes = kNone;
};

// A tenant asks for this on top of its holdings.
struct TenantRequest {
  std::string tenant;
  std::string request_id;  // empty, or of the job that is asked for: what is there already is no more
  int64_t jobs = 0, chains = 0, bytes = 0;
};

struct TenantHoldings {
  const JobTable& jobs;       // of all tenants
  int64_t content_bytes = 0;  // of the data sets and models that the tenant has put
};

// RESOURCE_EXHAUSTED / TENANT_LIMIT naming the limit, what the tenant has and what to do. Looks at everything held.
absl::Status CheckTenantLimits(const TenantLimits& limits, const TenantHoldings& holdings,
                               const TenantRequest& request);

}  // namespace chainfleet
