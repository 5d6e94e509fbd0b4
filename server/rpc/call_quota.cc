#include "server/rpc/call_quota.h"

#include <string>
#include <utility>

#include "server/rpc/audit_rate.h"
#include "server/rpc/method_names.h"

namespace chainfleet {
namespace {

using grpc::experimental::InterceptionHookPoints;

struct Quotas {
  Quotas(const Clock* the_clock, std::shared_ptr<CallsInFlight> the_calls, int64_t changes_at_once)
      : clock(the_clock), calls(std::move(the_calls)), changes(changes_at_once) {}

  const Clock* const clock;
  const std::shared_ptr<CallsInFlight> calls;
  AuditRate changes;  // calls of users that change something
};

// Counts one call until it is over.
class QuotaInterceptor final : public grpc::experimental::Interceptor {
 public:
  QuotaInterceptor(const char* method, const Authenticator* auth, std::shared_ptr<Quotas> quotas)
      : method_(method == nullptr ? "" : method), auth_(auth), quotas_(std::move(quotas)) {}
  ~QuotaInterceptor() override {
    if (!tenant_.empty()) quotas_->calls->Leave(tenant_);
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
    if (!quotas_->calls->Enter(tenant_)) {
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
  QuotaFactory(const Authenticator* auth, std::shared_ptr<Quotas> quotas) : auth_(auth), quotas_(std::move(quotas)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new QuotaInterceptor(info->method(), auth_, quotas_);
  }

 private:
  const Authenticator* const auth_;
  const std::shared_ptr<Quotas> quotas_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallQuota(
    const Authenticator* auth, const Clock* clock, std::shared_ptr<CallsInFlight> calls, int64_t changes_at_once) {
  return std::make_unique<QuotaFactory>(auth, std::make_shared<Quotas>(clock, std::move(calls), changes_at_once));
}

}  // namespace chainfleet
