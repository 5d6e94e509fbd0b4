#include "server/control/tenant_limits.h"

#include <algorithm>
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

// True if the job of the request is committed.
bool HasJobOf(const JobTable& jobs, const TenantRequest& request) {
  return !request.request_id.empty() && jobs.HasJobOfRequest(request.tenant, request.request_id);
}

// Returns what the tenant has, with the requests in flight.
Holdings CountHoldings(const JobTable& jobs, const Catalog& catalog, const std::map<TenantRequest, int>& requests,
                       const std::string& tenant) {
  const TenantJobs committed = jobs.OfTenant(tenant);
  Holdings has{committed.jobs, committed.chains, committed.kept_chains, 0,
               static_cast<int64_t>(std::min<__int128>(committed.draw_bytes, TenantLimits::kNone))};
  for (auto i = requests.lower_bound({.tenant = tenant}); i != requests.end() && i->first.tenant == tenant; ++i) {
    has.jobs += i->first.jobs;
    has.chains += i->first.chains;
    has.kept_chains += i->first.chains;
    has.contents += i->first.contents;
    has.bytes = SaturatingAdd(has.bytes, i->first.bytes);
  }
  // An upload becomes visible before its reservation ends, so it is never missed here.
  const ContentHoldings stored = catalog.HoldingsOf(tenant);
  has.contents += stored.contents;
  has.bytes = SaturatingAdd(has.bytes, stored.bytes);
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
  CHAINFLEET_RETURN_IF_ERROR(
      CheckLimit(tenant, "jobs", has.jobs, request.jobs, limits.jobs.For(tenant), kDelete, "tenant_jobs"));
  const absl::Status room = CheckLimit(tenant, "chains", has.chains, request.chains, limits.chains.For(tenant),
                                       "wait until a job ends, or cancel one", "tenant_chains");
  if (!room.ok()) return WithRetryAfter(room, kChainsRetry);
  // The server holds a row of each chain in memory until its job is deleted.
  CHAINFLEET_RETURN_IF_ERROR(CheckLimit(tenant, "chains with those that ended", has.kept_chains, request.chains,
                                        limits.KeptChains(tenant), kDelete, "tenant_chains"));
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
  if (HasJobOf(jobs, request)) return reservation;
  MutexLock lock(&in_flight_->mutex);
  auto& requests = in_flight_->requests;
  auto at = requests.find(request);
  if (at == requests.end()) {
    CHAINFLEET_RETURN_IF_ERROR(CheckLimits(limits_, CountHoldings(jobs, catalog, requests, request.tenant), request));
    at = requests.emplace(request, 0).first;
  }
  ++at->second;
  reservation->at_ = at;
  return reservation;
}

std::vector<LimitUsage> TenantQuotas::Usage(const JobTable& jobs, const Catalog& catalog,
                                            const std::string& tenant) const {
  MutexLock lock(&in_flight_->mutex);
  const Holdings has = CountHoldings(jobs, catalog, in_flight_->requests, tenant);
  return {{"jobs", has.jobs, limits_.jobs.For(tenant)},
          {"chains", has.chains, limits_.chains.For(tenant)},
          {"kept_chains", has.kept_chains, limits_.KeptChains(tenant)},
          {"contents", has.contents, limits_.contents.For(tenant)},
          {"stored_bytes", has.bytes, limits_.stored_bytes.For(tenant)}};
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
