#include "server/rpc/call_quota.h"

#include <map>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/per_tenant.h"
#include "server/rpc/audit_rate.h"
#include "server/rpc/method_names.h"

namespace chainfleet {
namespace {

using grpc::experimental::InterceptionHookPoints;

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

 private:
  const PerTenant<int64_t> most_;
  Mutex mutex_;
  std::map<std::string, int64_t> calls_ CHAINFLEET_GUARDED_BY(mutex_);
};

struct Quotas {
  Quotas(const Clock* the_clock, const AccessOptions& access)
      : clock(the_clock), calls(access.tenant_calls), changes(access.changes_at_once) {}

  const Clock* const clock;
  CallsInFlight calls;
  AuditRate changes;  // calls of users that change something
};

// Counts one call until it is over.
class QuotaInterceptor final : public grpc::experimental::Interceptor {
 public:
  QuotaInterceptor(const char* method, const Authenticator* auth, std::shared_ptr<Quotas> quotas)
      : method_(method == nullptr ? "" : method), auth_(auth), quotas_(std::move(quotas)) {}
  ~QuotaInterceptor() override {
    if (!tenant_.empty()) quotas_->calls.Leave(tenant_);
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* hooks) override {
    if (hooks->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) Begin(hooks);
    hooks->Proceed();
  }

 private:
  void Begin(grpc::experimental::InterceptorBatchMethods* hooks) {
    CallMetadata* metadata = hooks->GetRecvInitialMetadata();
    metadata->erase(kOverQuotaHeader);
    if (!auth_->wants_tokens()) return;
    const absl::StatusOr<Principal> caller = auth_->Authorize(method_, *metadata);
    if (!caller.ok() || method_.find(".WorkerService/") != std::string::npos || !caller->may(kPredict)) return;
    tenant_ = caller->tenant;
    if (!quotas_->calls.Enter(tenant_)) {
      metadata->emplace(kOverQuotaHeader, kTooManyCalls);
    } else if (ChangesSomething(FindMethod(method_.c_str())) &&
               !quotas_->changes.Take(*caller, quotas_->clock->Monotonic())) {
      metadata->emplace(kOverQuotaHeader, kTooManyChanges);
    }
  }

  const std::string method_;
  const Authenticator* const auth_;
  const std::shared_ptr<Quotas> quotas_;
  std::string tenant_;  // empty: not counted
};

class QuotaFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  QuotaFactory(const Authenticator* auth, const Clock* clock, const AccessOptions& access)
      : auth_(auth), quotas_(std::make_shared<Quotas>(clock, access)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new QuotaInterceptor(info->method(), auth_, quotas_);
  }

 private:
  const Authenticator* const auth_;
  const std::shared_ptr<Quotas> quotas_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallQuota(const Authenticator* auth,
                                                                                     const Clock* clock,
                                                                                     const AccessOptions& access) {
  return std::make_unique<QuotaFactory>(auth, clock, access);
}

}  // namespace chainfleet
