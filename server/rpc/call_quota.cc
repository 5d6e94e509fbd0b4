#include "server/rpc/call_quota.h"

#include <map>
#include <string>

#include "core/base/mutex.h"

namespace chainfleet {
namespace {

using grpc::experimental::InterceptionHookPoints;

// Calls in flight by tenant. Thread-safe.
class CallsInFlight {
 public:
  explicit CallsInFlight(int64_t most) : most_(most) {}

  // Counts a call. False if the tenant is over its bound.
  bool Enter(const std::string& tenant) {
    MutexLock lock(&mutex_);
    return ++calls_[tenant] <= most_;
  }
  void Leave(const std::string& tenant) {
    MutexLock lock(&mutex_);
    const auto found = calls_.find(tenant);
    if (--found->second == 0) calls_.erase(found);
  }

 private:
  const int64_t most_;
  Mutex mutex_;
  std::map<std::string, int64_t> calls_ CHAINFLEET_GUARDED_BY(mutex_);
};

// Counts one call until it is over.
class QuotaInterceptor final : public grpc::experimental::Interceptor {
 public:
  QuotaInterceptor(const char* method, const Authenticator* auth, std::shared_ptr<CallsInFlight> calls)
      : method_(method == nullptr ? "" : method), auth_(auth), calls_(std::move(calls)) {}
  ~QuotaInterceptor() override {
    if (!tenant_.empty()) calls_->Leave(tenant_);
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
    if (!calls_->Enter(tenant_)) metadata->emplace(kOverQuotaHeader, "1");
  }

  const std::string method_;
  const Authenticator* const auth_;
  const std::shared_ptr<CallsInFlight> calls_;
  std::string tenant_;  // empty: not counted
};

class QuotaFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  QuotaFactory(const Authenticator* auth, int64_t most) : auth_(auth), calls_(std::make_shared<CallsInFlight>(most)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new QuotaInterceptor(info->method(), auth_, calls_);
  }

 private:
  const Authenticator* const auth_;
  const std::shared_ptr<CallsInFlight> calls_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallQuota(const Authenticator* auth,
                                                                                     int64_t most) {
  return std::make_unique<QuotaFactory>(auth, most);
}

}  // namespace chainfleet
