#include "server/control/tenant_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/saturating.h"

namespace chainfleet {
namespace {

constexpr char kDelete[] = "delete what nobody needs";
constexpr absl::Duration kChainsRetry = absl::Seconds(30);  // a guess: nobody knows when a job ends

absl::Status CheckLimit(const std::string& tenant, const char* what, int64_t has, int64_t more, int64_t limit,
                        const char* way_out, const std::string& bound) {
  if (more == 0 || has <= limit - more) return absl::OkStatus();
  return BoundReached(
      bound,
      absl::StrCat("tenant ", tenant, " has ", has, " of ", limit, " ", what, " and asks for ", more,
                   " more: ", way_out, ", or ask an operator to raise --", absl::StrReplaceAll(bound, {{"_", "-"}})),
      "TENANT_LIMIT");
}

}  // namespace

absl::Status CheckTenantLimits(const TenantLimits& limits, const TenantHoldings& holdings,
                               const TenantRequest& request) {
  int64_t num_jobs = 0, chains = 0, bytes = holdings.content_bytes;
  for (const auto& [sequence, job] : holdings.jobs.by_age()) {
    if (job->row.tenant != request.tenant || job->row.intent == JobIntent::kDelete) continue;
    if (!request.request_id.empty() && job->row.request_id == request.request_id) return absl::OkStatus();
    ++num_jobs;
    if (!job->row.finished_at) chains += static_cast<int64_t>(job->chains.size());
    bytes = SaturatingAdd(bytes, SaturatingMultiply(job->num_draws, job->draw_bytes));
  }
  const std::string& tenant = request.tenant;
  CHAINFLEET_RETURN_IF_ERROR(CheckLimit(tenant, "jobs", num_jobs, request.jobs, limits.jobs, kDelete, "tenant_jobs"));
  const absl::Status room = CheckLimit(tenant, "chains", chains, request.chains, limits.chains,
                                       "wait until a job ends, or cancel one", "tenant_chains");
  if (!room.ok()) return WithRetryAfter(room, kChainsRetry);
  // Draws come later: a tenant at the limit gets no job that would make more.
  return CheckLimit(tenant, "stored bytes", bytes, std::max<int64_t>(request.bytes, 1), limits.stored_bytes, kDelete,
                    "tenant_stored_gib");
}

}  // namespace chainfleet
