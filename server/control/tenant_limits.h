// Limits on one tenant's share of a server.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/per_tenant.h"
#include "core/base/saturating.h"
#include "core/base/status.h"
#include "server/control/catalog.h"
#include "server/control/job_table.h"

namespace chainfleet {

struct TenantLimits {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max(), kKeptChains = 16;
  PerTenant<int64_t> jobs = kNone;  // jobs that are not deleted
  // Chains of jobs that have not ended; with those of ended jobs, kKeptChains times as many.
  PerTenant<int64_t> chains = kNone;
  PerTenant<int64_t> contents = kNone;  // data sets and models, counted by ContentsOf
  // Bytes of the tenant's committed draws, estimated from the parameters of the networks, and of data sets and models.
  PerTenant<int64_t> stored_bytes = kNone;
  int64_t KeptChains(const std::string& tenant) const { return SaturatingMultiply(kKeptChains, chains.For(tenant)); }
};

// How much of a limit a tenant uses.
struct LimitUsage {
  const char* name;
  int64_t used, limit;  // limit: TenantLimits::kNone if there is none
};

// The jobs, chains, bytes, data sets and models that a tenant requests in addition to its holdings.
struct TenantRequest {
  std::string tenant;
  std::string request_id;  // request id of the job, or empty; a job that exists already counts once
  int64_t jobs = 0, chains = 0, bytes = 0;
  // The object that the request adds, unless the request id says it. Only one of several equal requests in flight can
  // add it, so they count once.
  std::string object;
  int64_t contents = 0;
  auto operator<=>(const TenantRequest&) const = default;
};

// Thread-safe.
class TenantQuotas {
 public:
  explicit TenantQuotas(const TenantLimits& limits) : limits_(limits) {}

  // Counts the request with the tenant's holdings until the reservation ends: calls in flight share the room that
  // committed ones leave. RESOURCE_EXHAUSTED / TENANT_LIMIT, naming the limit, the tenant's holdings and what to do.
  absl::StatusOr<std::shared_ptr<TenantReservation>> Reserve(const JobTable& jobs, const Catalog& catalog,
                                                             const TenantRequest& request);

  // Returns the tenant's usage of each limit as Reserve counts it. Reads no jobs, only the tenant's requests in flight.
  std::vector<LimitUsage> Usage(const JobTable& jobs, const Catalog& catalog, const std::string& tenant) const;

 private:
  friend class TenantReservation;
  struct InFlight {
    Mutex mutex;
    std::map<TenantRequest, int> requests CHAINFLEET_GUARDED_BY(mutex);  // with the number of their reservations
  };
  const TenantLimits limits_;
  const std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
};

// The room of one request. Its holder ends it when the change is committed and visible, or has failed, and before the
// caller hears of that. The destructor ends it, too. May outlive the quotas. Thread-safe.
class TenantReservation {
 public:
  ~TenantReservation() { Release(); }
  TenantReservation(const TenantReservation&) = delete;
  void Release();

 private:
  friend class TenantQuotas;
  explicit TenantReservation(std::shared_ptr<TenantQuotas::InFlight> in_flight);
  const std::shared_ptr<TenantQuotas::InFlight> in_flight_;
  std::map<TenantRequest, int>::iterator at_;  // under the lock of `in_flight_`; the end: holds nothing
};

}  // namespace chainfleet
