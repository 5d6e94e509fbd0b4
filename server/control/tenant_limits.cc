#include "server/control/tenant_limits.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/saturating.h"

namespace chainfleet {
namespace {

constexpr char kDelete[] = "delete what nobody needs";
constexpr absl::Duration kChainsRetry = absl::Seconds(30);  // a guess: nobody knows when a job ends

struct Holdings {
  int64_t jobs = 0, chains = 0, kept_chains = 0, contents = 0, bytes = 0;
};

// Returns the tenant's committed jobs, or nullopt if the job of the request is one of them.
std::optional<Holdings> CommittedJobs(const JobTable& jobs, const TenantRequest& request) {
  Holdings has;
  for (const auto& [sequence, job] : jobs.by_age()) {
    if (job->row.tenant != request.tenant || job->row.intent == JobIntent::kDelete) continue;
    if (!request.request_id.empty() && job->row.request_id == request.request_id) return std::nullopt;
    ++has.jobs;
    has.kept_chains += static_cast<int64_t>(job->chains.size());
    if (!job->row.finished_at) has.chains += static_cast<int64_t>(job->chains.size());
    has.bytes = SaturatingAdd(has.bytes, SaturatingMultiply(job->num_draws, job->draw_bytes));
  }
  return has;
}

absl::Status CheckLimit(const std::string& tenant, const char* what, int64_t has, int64_t more, int64_t limit,
                        const char* way_out, const std::string& bound) {
  if (more == 0 || has <= limit - more) return absl::OkStatus();
  return BoundReached(
      bound,
      absl::StrCat("tenant ", tenant, " has ", has, " of ", limit, " ", what, " and asks for ", more,
                   " more: ", way_out, ", or ask an operator to raise --", absl::StrReplaceAll(bound, {{"_", "-"}})),
      "TENANT_LIMIT");
}

absl::Status CheckLimits(const TenantLimits& limits, const Holdings& has, const TenantRequest& request) {
  const std::string& tenant = request.tenant;
  const int64_t chains = limits.chains.For(tenant);
  CHAINFLEET_RETURN_IF_ERROR(
      CheckLimit(tenant, "jobs", has.jobs, request.jobs, limits.jobs.For(tenant), kDelete, "tenant_jobs"));
  const absl::Status room = CheckLimit(tenant, "chains", has.chains, request.chains, chains,
                                       "wait until a job ends, or cancel one", "tenant_chains");
  if (!room.ok()) return WithRetryAfter(room, kChainsRetry);
  // The server holds a row of each chain in memory until its job is deleted.
  CHAINFLEET_RETURN_IF_ERROR(CheckLimit(tenant, "chains with those that ended", has.kept_chains, request.chains,
                                        SaturatingMultiply(TenantLimits::kKeptChains, chains), kDelete,
                                        "tenant_chains"));
  CHAINFLEET_RETURN_IF_ERROR(CheckLimit(tenant, "data sets and models", has.contents, request.contents,
                                        limits.contents.For(tenant), kDelete, "tenant_contents"));
  // Draws come later: a tenant at the limit gets no job that would make more.
  return CheckLimit(tenant, "stored bytes", has.bytes, std::max<int64_t>(request.bytes, 1),
                    limits.stored_bytes.For(tenant), kDelete, "tenant_stored_gib");
}

}  // namespace

absl::StatusOr<std::shared_ptr<TenantReservation>> TenantQuotas::Reserve(const JobTable& jobs, const Catalog& catalog,
                                                                         const TenantRequest& request) {
  const std::shared_ptr<TenantReservation> reservation(new TenantReservation(in_flight_));
  std::optional<Holdings> has = CommittedJobs(jobs, request);
  if (!has) return reservation;
  MutexLock lock(&in_flight_->mutex);
  auto& requests = in_flight_->requests;
  auto at = requests.find(request);
  if (at == requests.end()) {
    for (auto i = requests.lower_bound({.tenant = request.tenant}); i != requests.end(); ++i) {
      if (i->first.tenant != request.tenant) break;
      has->jobs += i->first.jobs;
      has->chains += i->first.chains;
      has->kept_chains += i->first.chains;
      has->contents += i->first.contents;
      has->bytes = SaturatingAdd(has->bytes, i->first.bytes);
    }
    // An upload becomes visible before its reservation ends, so it is never missed here.
    const ContentHoldings stored = catalog.HoldingsOf(request.tenant);
    has->contents += stored.contents;
    has->bytes = SaturatingAdd(has->bytes, stored.bytes);
    CHAINFLEET_RETURN_IF_ERROR(CheckLimits(limits_, *has, request));
    at = requests.emplace(request, 0).first;
  }
  ++at->second;
  reservation->at_ = at;
  return reservation;
}

TenantReservation::TenantReservation(std::shared_ptr<TenantQuotas::InFlight> in_flight)
    : in_flight_(std::move(in_flight)) {
  MutexLock lock(&in_flight_->mutex);
  at_ = in_flight_->requests.end();
}

void TenantReservation::Release() {
  MutexLock lock(&in_flight_->mutex);
  const auto at = std::exchange(at_, in_flight_->requests.end());
  if (at != in_flight_->requests.end() && --at->second == 0) in_flight_->requests.erase(at);
}

}  // namespace chainfleet
