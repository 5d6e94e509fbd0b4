// What one tenant may have of a server that others use, too.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

class JobTable;

struct TenantLimits {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t jobs = kNone;        // that are not deleted
  int64_t chains = kNone;      // of jobs that have not ended
  int64_t draw_bytes = kNone;  // of committed draws, estimated by the parameters of their networks
};

// What a tenant asks for on top of what it has.
struct TenantRequest {
  std::string tenant;
  std::string request_id;  // empty, or of the job that is asked for: what is there already is no more
  int64_t jobs = 0, chains = 0;
};

// RESOURCE_EXHAUSTED / TENANT_LIMIT naming the limit, what the tenant has and what to do. Looks at every job.
absl::Status CheckTenantLimits(const TenantLimits& limits, const JobTable& jobs, const TenantRequest& request);

}  // namespace chainfleet
