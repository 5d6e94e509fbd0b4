// An interceptor that bounds the calls of one tenant in flight, and the changes of one caller.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/per_tenant.h"
#include "server/rpc/auth.h"

namespace chainfleet {

// Calls in flight by tenant. Thread-safe.
class CallsInFlight {
 public:
  explicit CallsInFlight(PerTenant<int64_t> most) : most_(std::move(most)) {}

  // Counts a call. False if the tenant is over its bound.
  bool Enter(const std::string& tenant) {
    MutexLock lock(&mutex_);
    return ++calls_[tenant] <= most_.For(tenant);
  }
  void Leave(const std::string& tenant) {
    MutexLock lock(&mutex_);
    const auto found = calls_.find(tenant);
    if (--found->second == 0) calls_.erase(found);
  }
  int64_t Count(const std::string& tenant) const {
    MutexLock lock(&mutex_);
    const auto found = calls_.find(tenant);
    return found == calls_.end() ? 0 : found->second;
  }
  int64_t LimitOf(const std::string& tenant) const { return most_.For(tenant); }

 private:
  const PerTenant<int64_t> most_;
  mutable Mutex mutex_;
  std::map<std::string, int64_t> calls_ CHAINFLEET_GUARDED_BY(mutex_);
};

// Marks each call of a tenant that already has as many in flight as `calls` allows, and each call that would change
// something when its caller has made `changes_at_once` of them and then one a second. The second bound keeps one caller
// from filling the audit log, which has a line for each change. Authenticator::CallerOf refuses a marked call as
// RESOURCE_EXHAUSTED / TENANT_LIMIT. A stream counts until it ends. Calls of workers do not count. Without tokens no
// call counts, because strangers would use up the calls of the only tenant. The pointers outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallQuota(
    const Authenticator* auth, const Clock* clock, std::shared_ptr<CallsInFlight> calls, int64_t changes_at_once);

}  // namespace chainfleet
