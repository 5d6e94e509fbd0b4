#include "server/control/tenant_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/control/job_table.h"

namespace chainfleet {
namespace {

absl::Status CheckLimit(const std::string& tenant, const char* what, int64_t has, int64_t more, int64_t limit,
                        const char* flag) {
  if (more == 0 || has <= limit - more) return absl::OkStatus();
  return WithReason(absl::ResourceExhaustedError(
                        absl::StrCat("tenant ", tenant, " has ", has, " of ", limit, " ", what, " and asks for ", more,
                                     " more: delete jobs that nobody needs, or ask an operator to raise ", flag)),
                    "TENANT_LIMIT");
}

}  // namespace

absl::Status CheckTenantLimits(const TenantLimits& limits, const JobTable& jobs, const TenantRequest& request) {
  int64_t num_jobs = 0, chains = 0;
  double bytes = 0;  // sums beyond int64_t are over any limit
  for (const auto& [sequence, job] : jobs.by_age()) {
    if (job->row.tenant != request.tenant || job->row.intent == JobIntent::kDelete) continue;
    if (!request.request_id.empty() && job->row.request_id == request.request_id) return absl::OkStatus();
    ++num_jobs;
    if (!job->row.finished_at) chains += static_cast<int64_t>(job->chains.size());
    bytes += static_cast<double>(job->num_draws) * static_cast<double>(job->draw_bytes);
  }
  const std::string& tenant = request.tenant;
  CHAINFLEET_RETURN_IF_ERROR(CheckLimit(tenant, "jobs", num_jobs, request.jobs, limits.jobs, "--tenant-jobs"));
  CHAINFLEET_RETURN_IF_ERROR(CheckLimit(tenant, "chains", chains, request.chains, limits.chains, "--tenant-chains"));
  if (bytes < static_cast<double>(limits.draw_bytes)) return absl::OkStatus();
  return CheckLimit(tenant, "bytes of draws", static_cast<int64_t>(std::min(bytes, 9e18)), 1, limits.draw_bytes,
                    "--tenant-draws-gib");
}

}  // namespace chainfleet
