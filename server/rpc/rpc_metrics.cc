#include "server/rpc/rpc_metrics.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <string>

#include "absl/status/status.h"

namespace chainfleet {
namespace {

using grpc::experimental::InterceptionHookPoints;

// Clients may call any name: only those of our contract become label values.
std::string MethodLabel(const char* method) {
  std::string name = method == nullptr ? "" : method;  // "/chainfleet.v1.JobService/GetJob"
  if (name.starts_with('/')) name.erase(0, 1);
  std::replace(name.begin(), name.end(), '/', '.');
  const bool known = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name) != nullptr;
  return known ? method : "other";
}

class Interceptor final : public grpc::experimental::Interceptor {
 public:
  Interceptor(std::string method, const Clock* clock, ServerMetrics* metrics)
      : method_(std::move(method)), clock_(clock), metrics_(metrics), started_(clock->Monotonic()) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const auto code = static_cast<absl::StatusCode>(methods->GetSendStatus().error_code());
      metrics_->CountRpc(method_, absl::StatusCodeToString(code), clock_->Monotonic() - started_);
    }
    methods->Proceed();
  }

 private:
  const std::string method_;
  const Clock* const clock_;
  ServerMetrics* const metrics_;
  const absl::Duration started_;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  Factory(const Clock* clock, ServerMetrics* metrics) : clock_(clock), metrics_(metrics) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new Interceptor(MethodLabel(info->method()), clock_, metrics_);
  }

 private:
  const Clock* const clock_;
  ServerMetrics* const metrics_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcMetrics(const Clock* clock,
                                                                                      ServerMetrics* metrics) {
  return std::make_unique<Factory>(clock, metrics);
}

}  // namespace chainfleet
